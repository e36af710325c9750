"""Names for visitors who have not said who they are, such as Teal Otter: one for each conversation, always the same.

The first 13 bits of the conversation's id choose the name, so that conversations can be searched by it. The names are
English in every language and prove nothing.
"""

from __future__ import annotations

from uuid import UUID

_ADJECTIVE_LIST = (
    "Amber Autumn Azure Brave Breezy Bright Brisk Bronze Calm Candid Cedar Cheery Clear Clever Coral Cosy"
    " Crimson Crisp Curious Daring Dawn Eager Early Fair Fern Gentle Glad Golden Grand Happy Hazel Honest"
    " Indigo Ivory Jade Jolly Keen Kind Lilac Lively Lucky Lunar Maple Mellow Merry Misty Nimble Noble"
    " Olive Pearl Plucky Polite Proud Quick Quiet Rosy Ruby Silver Snowy Sunny Swift Teal Tidy Violet"
)
_ANIMAL_LIST = (
    "Albatross Alpaca Antelope Badger Bear Beaver Bee Bison Bluebird Boar Bobcat Buffalo Bunting Butterfly Camel Canary"
    " Caribou Cat Chamois Cheetah Chipmunk Cicada Clam Cod Condor Corncrake Cormorant Cougar Crab Crane Cricket Crow"
    " Curlew Deer Dingo Dolphin Dormouse Dove Dragonfly Duck Eagle Egret Eider Elk Ermine Falcon Ferret Finch"
    " Firefly Flamingo Fox Frog Gannet Gazelle Gecko Gerbil Giraffe Gnu Goldfish Goose Grouse Gull Hare Hawk"
    " Hedgehog Heron Hoopoe Horse Hummingbird Ibex Ibis Iguana Impala Jackdaw Jaguar Jay Kestrel Kingfisher Kite Koala"
    " Ladybird Lark Lemur Leopard Linnet Lion Llama Lobster Lynx Macaw Magpie Mallard Manatee Marmot Marten Meerkat"
    " Mink Moose Moth Narwhal Newt Nuthatch Ocelot Octopus Oriole Osprey Otter Owl Panda Panther Parrot Pelican"
    " Penguin Pheasant Plover Puffin Quail Rabbit Raven Robin Salmon Seal Sparrow Squirrel Starling Stork Swan Tiger"
)
_ADJECTIVES, _ANIMALS = _ADJECTIVE_LIST.split(), _ANIMAL_LIST.split()
_BITS = 13
_FEWEST_LETTERS = 3


def name_of(session_id: UUID) -> str:
    """The name of an unnamed visitor in this conversation."""
    adjective, animal = divmod(session_id.int >> (128 - _BITS), len(_ANIMALS))
    return f"{_ADJECTIVES[adjective]} {_ANIMALS[animal]}"


def ids_named(words: str) -> list[tuple[UUID, UUID]]:
    """The first and last id of each range of conversations whose names hold these words, the last of them perhaps only
    begun. Empty for fewer than three letters."""
    wanted = words.title().split()
    if not wanted or len(wanted) > 2 or len(wanted[-1]) < _FEWEST_LETTERS:
        return []
    begins = wanted[-1]
    animals = [number for number, word in enumerate(_ANIMALS) if word.startswith(begins)]
    if len(wanted) == 2:
        adjectives = [number for number, word in enumerate(_ADJECTIVES) if word == wanted[0]]
    else:
        adjectives = list(range(len(_ADJECTIVES)))
    found = [_ids(adjective, animal, animal) for adjective in adjectives for animal in animals]
    if len(wanted) == 1:
        named = (number for number, word in enumerate(_ADJECTIVES) if word.startswith(begins))
        found += [_ids(number, 0, len(_ANIMALS) - 1) for number in named]
    return found


def _ids(adjective: int, first: int, last: int) -> tuple[UUID, UUID]:
    begin = adjective * len(_ANIMALS)
    return (
        UUID(int=begin + first << (128 - _BITS)),
        UUID(int=(begin + last + 1 << (128 - _BITS)) - 1),
    )
