"""The one contract of channels: what an adapter takes in, what it sends, and what it can say about an address.

A channel is one subclass of `Adapter`, registered once in `adapters`. It knows its provider and
nothing of conversations: `inbound.receive` and `delivery` do everything that is the same for all channels.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from apps.contacts.enums import Proof, register_identity_kind
from apps.messengers.enums import ChannelKind, MessageState

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_adapters: dict[str, Adapter] = {}


@dataclass(frozen=True)
class InboundFile:
    """`ref`: where the provider keeps it, until `Adapter.fetch` got its bytes."""

    name: str
    content: bytes = b""
    ref: str = ""


@dataclass(frozen=True)
class Inbound:
    """One message of a person.

    `external_id`: the provider's id, unique in the channel. `key`: the thread; `peer`: where answers go; `sender`: who
    wrote, as contacts write identities of the adapter's `identity`, "" if the provider vouches for no sender.
    `choice`: the value of a pressed option. `reference`: merged into the thread's. `is_peer`: that the thread's own
    person wrote it is more than a claim; otherwise a raised level ends before the message counts. `continues`: the
    secret of a link by which a visitor of the widget goes on here (`following`).
    """

    external_id: str
    key: str
    peer: str
    text: str = ""
    name: str = ""
    sender: str = ""
    language: str = ""
    choice: str = ""
    files: Sequence[InboundFile] = ()
    reference: Mapping[str, Any] = field(default_factory=dict)
    is_peer: bool = True
    continues: str = ""


@dataclass(frozen=True)
class Receipt:
    """What the provider says of a message that was sent; `problem` with the state `failed`."""

    external_id: str
    state: MessageState
    problem: str = ""


@dataclass(frozen=True)
class Press:
    """A pressed button of a card that `Adapter.send_card` sent. `account` is the person who pressed it, as
    `Inbound.sender` names them; `message_id` the `Sent.external_id` of the message; `reply`: what
    `Adapter.answer_press` needs."""

    account: str
    value: str
    message_id: str
    reply: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Received:
    """What a call of the provider contained. `answer` is sent back instead of an empty 200; `raw`: a whole mail."""

    messages: Sequence[Inbound] = ()
    receipts: Sequence[Receipt] = ()
    presses: Sequence[Press] = ()
    answer: HttpResponse | None = None
    raw: bytes = b""


@dataclass(frozen=True)
class OutboundOption:
    """An answer to press. `choice` comes back as `Inbound.choice`."""

    label: str
    choice: str


@dataclass(frozen=True)
class OutboundFile:
    """`link` with the name alone, for an adapter that `links_files`; "" where our own address isn't known."""

    name: str
    content: bytes
    mime: str
    link: str = ""


@dataclass(frozen=True)
class Outbound:
    """One entry of a conversation. `text` is Markdown; `sources`: pairs of title and address; `author`: the member who
    wrote it, "" for the chatbot. `once` is the same for every attempt at this message."""

    text: str
    once: str
    title: str = ""
    author: str = ""
    language: str = "en"
    options: Sequence[OutboundOption] = ()
    sources: Sequence[tuple[str, str]] = ()
    file: OutboundFile | None = None


@dataclass(frozen=True)
class CardButton:
    """A button of a card: `value` comes back as `Press.value`, `url` is opened; one of them is empty."""

    label: str
    value: str = ""
    url: str = ""
    is_main: bool = False


@dataclass(frozen=True)
class CardLine:
    """One line below a card's title. `text` may hold what a visitor or a model wrote: it is shown as plain text, never
    as markup. A change has `before` and `after` instead."""

    label: str = ""
    text: str = ""
    before: str | None = None
    after: str | None = None

    def as_text(self) -> str:
        changes = self.before is not None or self.after is not None
        text = f"{self.before or '-'} → {self.after or '-'}" if changes else self.text
        return f"{self.label}: {text}" if self.label else text


@dataclass(frozen=True)
class CardMessage:
    """A card as an approver's message, in their language. `notes` are the product's own words about it: its risk, the
    time left, what became of it."""

    title: str
    once: str
    lines: Sequence[CardLine] = ()
    notes: Sequence[str] = ()
    buttons: Sequence[CardButton] = ()


@dataclass(frozen=True)
class Place:
    """Where a message goes: the channel's settings and opened secrets, and the thread's address and reference.
    `open_for`: seconds since the person last wrote; None when they never did."""

    settings: Mapping[str, Any]
    secrets: Mapping[str, str]
    public_id: str
    peer: str
    key: str
    peer_name: str = ""
    reference: Mapping[str, Any] = field(default_factory=dict)
    open_for: float | None = None


@dataclass(frozen=True)
class Sent:
    """`reference` is merged into the thread's."""

    external_id: str
    reference: Mapping[str, Any] = field(default_factory=dict)


class NotSent(Exception):
    """The provider did not take it. `code` is a word for the list of problems, `retry_after` seconds if it is worth
    another attempt; None for a refusal that stays. `opted_out`: the person wants no more messages. `reference` is
    merged into the thread's, for an attempt that goes on where this one ended."""

    def __init__(
        self,
        code: str,
        *,
        retry_after: float | None = None,
        opted_out: bool = False,
        reference: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.code, self.retry_after, self.opted_out = code[:60], retry_after, opted_out
        self.reference = reference or {}


@dataclass(frozen=True)
class Setting:
    """A field of the form that adds a channel. `secret`: it is sealed and never shown again. `guards`: the secret that
    is sent where this field says; it has to be entered again with another value."""

    name: str
    label: StrOrPromise
    help: StrOrPromise = ""
    secret: bool = False
    required: bool = True
    kind: str = "text"
    default: str = ""
    guards: str = ""


class Adapter:
    """A kind of channel. `sends_twice_safely`: the same `Outbound.once` sent again shows one message, so an attempt
    whose outcome is unknown is made again; otherwise it is not. `proof`: how far the provider vouches for `sender`."""

    kind: ClassVar[ChannelKind]
    # A kind of identity that `sender` is; "" if people have ids of this channel's own.
    identity: ClassVar[str] = ""
    proof: ClassVar[Proof] = Proof.PROVIDER
    settings: ClassVar[Sequence[Setting]] = ()
    sends_twice_safely: ClassVar[bool] = False
    # Whether the same is true of a message with a file.
    sends_files_twice_safely: ClassVar[bool] = False
    # Whether a file is sent as a link to it (`OutboundFile.link`) in place of its bytes.
    links_files: ClassVar[bool] = False
    longest_text: ClassVar[int] = 4000
    # The largest call of the provider that is read, in bytes.
    largest_call: ClassVar[int] = 2_000_000
    # In lower case. A person who sends one gets no more messages, and gets them again after the other.
    opt_out_words: ClassVar[frozenset[str]] = frozenset()
    opt_in_words: ClassVar[frozenset[str]] = frozenset()
    # Whether approvers can be sent cards here (`send_card`, `update_card`, `answer_press`).
    carries_cards: ClassVar[bool] = False
    # Whether `connect` tells the provider the webhook, which it keeps as the setting `webhook`, and `disconnect` takes
    # it back.
    sets_webhook: ClassVar[bool] = False
    # Whether an opt-in word is answered with the chatbot's greeting.
    greets: ClassVar[bool] = False

    def link(self, settings: Mapping[str, object], secret: str) -> str:
        """An address that opens the channel and hands `secret` (43 letters, digits, - and _) over as
        `Inbound.continues`; "" for a channel that has none."""
        return ""

    def check(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, StrOrPromise]:
        """Problems of a new or changed channel by the name of the setting; nothing is called."""
        return {}

    def steps(self, settings: Mapping[str, object], webhook: str) -> Sequence[StrOrPromise]:
        """What to do at the provider, in order. `webhook`: the address that the provider calls."""
        return ()

    async def connect(self, place: Place, webhook: str) -> Mapping[str, object]:
        """Check the credentials at the provider and tell it the webhook where it takes one. Returns what to keep in the
        channel's settings, such as the bot's name. Raises `NotSent`."""
        return {}

    async def disconnect(self, place: Place) -> None:
        """Have the provider call this channel's address no more; a webhook of another channel stays. Raises
        `NotSent`."""

    def receive(self, request: HttpRequest, body: bytes, place: Place) -> Received:
        """What a call of the provider contains, after its signature was checked. Raises `PermissionError` for a wrong
        or missing signature, `ValueError` for a body that is not the provider's. Nothing is called and stored here."""
        raise ValueError("this channel takes no calls")

    def polls(self, settings: Mapping[str, object]) -> bool:
        """Whether the provider has to be asked for new messages (`poll`)."""
        return False

    async def poll(
        self,
        tenant_id: UUID,
        channel_id: UUID,
        place: Place,
        kept: dict[str, object],
        go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        """Ask the provider for new messages and hand them in; `kept` is stored afterwards. An adapter whose provider
        reports new ones may wait for them and hand them in as they come, as long as `go_on`, which stores `kept`,
        returns True. Raises `NotSent`."""

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        """The message with files that the provider hands out separately. Raises `NotSent`."""
        return message

    async def send(self, place: Place, message: Outbound) -> Sent:
        """Hand one message to the provider. Raises `NotSent`."""
        raise NotImplementedError

    async def send_card(self, place: Place, card: CardMessage) -> Sent:
        """Send a card to the account `place.peer` alone. Raises `NotSent`."""
        raise NotImplementedError

    async def update_card(self, place: Place, external_id: str, card: CardMessage) -> None:
        """Replace a card that was sent under this id. Raises `NotSent`."""
        raise NotImplementedError

    async def answer_press(self, place: Place, press: Press, text: str) -> None:
        """Tell the person who pressed a button the outcome, so that only they see it. Raises `NotSent`."""
        raise NotImplementedError


def register(adapter: Adapter) -> None:
    _adapters[adapter.kind] = adapter
    if not adapter.identity:
        register_identity_kind(adapter.kind.value, adapter.kind.label)


def adapter_of(kind: str) -> Adapter:
    return _adapters[kind]


def adapters() -> list[Adapter]:
    """In the order in which they were registered."""
    return list(_adapters.values())
