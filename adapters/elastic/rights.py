"""The minimal privileges that our key or user needs at Elasticsearch."""

from __future__ import annotations

from typing import Any, Final

# https://www.elastic.co/docs/reference/elasticsearch/security-privileges
#   monitor                  health, and the common clock of all gateways (nodes/stats)
#   manage_index_templates   the template, before the first index
#   manage                   indexes, aliases, mappings, settings, refreshes; on our indexes only
#   read, write              documents
ROLE: Final[dict[str, Any]] = {
    "cluster": ["manage_index_templates", "monitor"],
    "indices": [{"names": ["pagewire-*", "pagewire.*"], "privileges": ["manage", "read", "write"]}],
}
