"""What goes on beside requests: commands that are carried out outside of the spaces they belong to."""
