"""The object store: bytes in a folder or in S3, and links to them that end. No SQL, no HTTP."""
