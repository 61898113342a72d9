"""From recorded curves to reported figures."""
