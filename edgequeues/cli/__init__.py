"""The command line: people and scripts on one side, the client or the app on the other."""
