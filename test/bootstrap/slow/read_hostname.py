# SPDX-License-Identifier: Apache-2.0
# Prints the host name that cloud-init's own function chooses from user-data (first file) and meta-data (second file).
import sys

import yaml

sys.path.insert(0, "/usr/lib/python3/dist-packages")
from cloudinit import util  # noqa: E402
from cloudinit.sources import DataSourceHostname  # noqa: E402

with open(sys.argv[1]) as user, open(sys.argv[2]) as meta:
    config, name = yaml.safe_load(user), yaml.safe_load(meta)["local-hostname"]


class Cloud:
    def get_hostname(self, fqdn=False, **_):
        return DataSourceHostname(name if fqdn else name.split(".")[0], False)


print(util.get_hostname_fqdn(config, Cloud())[0])
