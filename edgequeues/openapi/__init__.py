"""What the server says of itself at `/openapi.json`: each route of each dialect, for those who make clients of it."""
