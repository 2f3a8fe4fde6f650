"""The widget of the explorer in a notebook: a thread beside the kernel's own answers the messages of the page."""

from typing import Any

import anywidget
import traitlets

from counterpoise._base.text import load_json
from counterpoise.explorer.conversation import Client, Conversation, Exporter, SolveWorkers, asset
from counterpoise.explorer.setting import Setting

HELLO = "hello"  # the first message of a page


class ExplorerWidget(anywidget.AnyWidget):
    """The page of the explorer, and the setting that it shows."""

    _esm = asset("explorer.js").decode()
    _css = asset("explorer.css").decode()
    state = traitlets.Unicode("").tag(sync=True)  # what the address holds elsewhere: JSON with the setting

    def __init__(self, exporter: Exporter) -> None:
        super().__init__()
        self._exporter = exporter
        conversation = Conversation(exporter.session, exporter)
        self._client = Client(conversation, SolveWorkers.start(), self._send_text)
        self._hello = conversation.hello
        self.on_msg(self._receive)

    @property
    def setting(self) -> Setting:
        """Return the current setting."""
        return Setting.of(load_json(self.state)["setting"]) if self.state else self._exporter.session.start

    def model(self) -> Any:
        """Return the classifier of the current setting; nothing is trained."""
        return self._exporter.model(self.setting)

    def _send_text(self, text: str) -> None:
        self.send({"text": text})

    def _receive(self, _widget: Any, content: Any, _buffers: Any) -> None:
        text = content.get("text") if isinstance(content, dict) else None
        if text == HELLO:
            self._send_text(self._hello)
        else:
            self._client.hear(text)
