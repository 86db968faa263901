"""Tests of the object store, over a folder and over a real S3 server."""
