"""The privileges that our key or user needs at Elasticsearch: the least with which everything works."""

from __future__ import annotations

from typing import Any, Final

# https://www.elastic.co/docs/reference/elasticsearch/security-privileges
#   monitor                  health, and the time that all gateways go by (nodes/stats)
#   manage_index_templates   a site's template, before its first index
#   manage                   indexes, aliases, mappings, settings, refreshes; on ours alone
#   read, write              documents
ROLE: Final[dict[str, Any]] = {
    "cluster": ["manage_index_templates", "monitor"],
    "indices": [{"names": ["pagewire-*", "pagewire.*"], "privileges": ["manage", "read", "write"]}],
}
