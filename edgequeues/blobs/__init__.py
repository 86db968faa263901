"""The object store: where large bodies lie, in a folder or in S3, and who may fetch them until when. No SQL, no HTTP."""
