"""What the commands print: tables and text for a terminal."""
