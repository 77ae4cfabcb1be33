# syntax=docker/dockerfile:1
# The server as an image: docker build -t pvescaler .
# The build bundles everything into dist/, so the image needs only Node and no node_modules.
# The digest is that of the index for all architectures, as docker-library/repo-info on GitHub records it for this tag.

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Without install scripts: this package's own would build before its sources are copied, and the `node` package would
# download the Node that the base image already has.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts/ensure.mjs scripts/bundling.mjs scripts/build.mjs scripts/
COPY src src
COPY ui ui
RUN npm run build

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
ENV NODE_ENV=production
# A small young generation keeps the heap small while a large cluster is read; Node's default is 128 MiB.
ENV NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/dist dist
COPY bin bin
COPY LICENSE ./
# Only the state is written, so the root file system may be read-only; /tmp is only a cache.
RUN install -d -o 1000 -g 1000 /var/lib/pvescaler \
  && ln -s /app/bin/pvescaler.js /usr/local/bin/pvescaler
VOLUME /var/lib/pvescaler
USER 1000:1000
EXPOSE 50051 50052 8080
# Kubernetes ignores it and uses the probes of the Deployment. 8080 is the default of http.health.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["pvescaler"]
CMD ["serve"]
