# syntax=docker/dockerfile:1
# The server as an image: docker build -t pvescaler .
# The build bundles everything into dist/, so the image needs Node and no node_modules.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Without install scripts: the one of this package would build before its sources are here, and the base image is the
# Node that another one would fetch.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts/ensure.mjs scripts/build.mjs scripts/
COPY src src
RUN npm run build

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production
# Where what is new is collected early, reading a large cluster leaves less behind; left alone, Node takes 128 MiB for it.
ENV NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/dist dist
COPY bin bin
COPY LICENSE ./
# State and, with a read-only root file system, nothing else is written; /tmp is only a cache.
RUN install -d -o 1000 -g 1000 /var/lib/pvescaler
VOLUME /var/lib/pvescaler
USER 1000:1000
EXPOSE 50051 50052 8080
ENTRYPOINT ["node", "/app/bin/pvescaler.js"]
CMD ["serve"]
