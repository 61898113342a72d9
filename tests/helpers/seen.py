"""Looking at a page in a browser."""


class Seen:
    """A page, and everything that should not happen to it."""

    def __init__(self, tab):
        self.tab = tab
        self.requests = []
        self.trouble = []
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("console", lambda message: self.trouble.append(message.text))
        tab.on("pageerror", lambda error: self.trouble.append(str(error)))
        tab.on("dialog", lambda dialog: self.trouble.append(dialog.message))
