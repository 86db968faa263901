"""Other people's clients and suites, as they are, against a real server. What is not ours lies in vendor/."""
