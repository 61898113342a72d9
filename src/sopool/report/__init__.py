"""What a person looks at: tables for the terminal, pages (HTML), tables for papers (Markdown, LaTeX, CSV), pictures."""
