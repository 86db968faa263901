"""Everything inside one space: its verbs and its tables."""
