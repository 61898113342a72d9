"""Output for people: terminal tables, HTML pages, tables for papers (Markdown, LaTeX, CSV) and figures."""
