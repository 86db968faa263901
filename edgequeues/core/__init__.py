"""Pure rules: ids, DXNs, cursors, versions, JSON, retention. Standard library and msgspec only."""
