"""The table by which intended actions are scored (docs/safety.md shows it). Words and commands, no logic.

`VERBS` say what is done, `MARKS` what it is done to and how; commands have a table of their own (`commands`).
A word stands in one class of verbs at most; its other forms and its common misspellings are made from it.
"""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """What is done, from the lightest to the gravest."""

    READ = "reads"
    CREATE = "adds something"
    CHANGE = "changes something"
    RUN = "runs something"
    SEND = "sends something to others"
    ACCESS = "changes who may do what"
    MONEY = "moves money"
    DESTROY = "destroys something"


class Mark(StrEnum):
    """To what and how, in the words of a factor."""

    SOFT = "is of little weight, or can be brought back"
    BLAST = "concerns all or many at once"
    LIVE = "concerns what is live"
    FORCED = "cannot be undone, or goes around a check"
    PLACE = "concerns a place of the operating system"
    SAFEGUARD = "concerns a system, its disks or its safeguards"
    STORE = "concerns a store of data or what it runs on"
    RECORDS = "concerns records"
    SECRET = "concerns secrets"
    PEOPLE = "concerns many people"
    OUTSIDE = "leads out of the house"
    TESTS = "only tests or checks"


BASE = {
    Verb.READ: 5,
    Verb.CREATE: 25,
    Verb.CHANGE: 45,
    Verb.RUN: 45,
    Verb.SEND: 45,
    Verb.ACCESS: 68,
    Verb.MONEY: 68,
    Verb.DESTROY: 70,
}
UNSAID = 40

VERBS: dict[Verb, str] = {
    Verb.READ: (
        "read list get search view show fetch count check inspect describe summarise summarize look find query select"
        " grep cat ls print explain calculate compare review analyse analyze think plan browse open lookup retrieve"
        " preview validate verify measure estimate translate ask classify parse scan watch monitor compute observe"
        " examine study consult tail head stat diff reason propose suggest recommend outline rank sort see learn"
    ),
    Verb.CREATE: "create add write append draft note save comment tag label copy insert generate make record store"
    " bookmark log prepare compose upload attach duplicate clone sketch",
    Verb.CHANGE: "update edit change rename move patch set configure modify replace adjust alter convert rewrite"
    " refactor merge rebase commit push archive close hide mute assign reassign schedule cancel reschedule toggle"
    " increase decrease migrate restore revert rollback mark pin enable approve accept sign book reserve order"
    " switch swap correct fix resize put upgrade downgrade unsubscribe link connect",
    Verb.RUN: "run execute start restart build install deploy release launch invoke call trigger compile provision"
    " download import stop pause resume boot sync use bash sh powershell script load scale",
    Verb.SEND: "send post publish email mail message notify tweet reply share forward broadcast invite submit"
    " announce text phone contact alert export exfiltrate expose leak disclose",
    Verb.ACCESS: "grant revoke chmod chown sudo impersonate authorise authorize elevate escalate promote unlock"
    " whitelist allowlist entitle empower disarm unbolt unlatch delegate",
    Verb.MONEY: "pay transfer wire refund charge purchase buy withdraw payout remit reimburse donate disburse invest"
    " sell credit debit lend wager gamble deposit subsidise subsidize overpay",
    Verb.DESTROY: (
        "delete remove erase drop purge wipe destroy truncate kill terminate uninstall unlink rm del rmdir unpublish"
        " overwrite shred clear flush empty prune discard nuke obliterate disable deactivate ban suspend reset rmtree"
        " annihilate eliminate expunge scrub trash demolish detach zap decommission scrap bin dump unregister evict"
        " deprovision eradicate nullify vacate void undeploy killall pkill taskkill shutdown poweroff"
    ),
}

MARKS: dict[Mark, str] = {
    Mark.SOFT: (
        "label tag labels tags draft drafts temp temporary tmp cache cached caches duplicate duplicates whitespace"
        " comment comments bookmark reaction typo unused imports trailing filter filters highlight placeholder todo"
        " title characters recycle restorable lint badge emoji"
    ),
    Mark.BLAST: (
        "all every everything everyone everybody entire whole bulk mass each recursive recursively thousands hundreds"
        " anything complete completely wholesale total totally cascade globally subscribers"
    ),
    Mark.LIVE: "production prod live mainline prd",
    Mark.FORCED: (
        "permanently permanent irreversibly irreversible forever force forced forcibly hard bypass bypassing skip"
        " unrecoverable unrecoverably noconfirm unconditionally overriding irrevocably irrevocable"
    ),
    Mark.SAFEGUARD: (
        "disk disks partition partitions bootloader kernel registry filesystem mbr firmware bios system32 backup"
        " backups snapshot snapshots audit firewall antivirus mfa logging monitoring safeguard safeguards guardrail"
        " guardrails selinux hypervisor raid sda sdb nvme"
    ),
    Mark.STORE: (
        "database databases db table tables schema schemas bucket buckets volume volumes server servers instance"
        " instances collection index keyspace repository repo repositories dataset cluster clusters namespace mailbox"
        " tenant tenants branch queue topic"
    ),
    Mark.RECORDS: (
        "account accounts user users customer customers record records row rows data history folder directory file"
        " files profile order orders invoice invoices document documents"
    ),
    Mark.SECRET: (
        "password passwords passphrase passwd secret secrets credential credentials apikey apikeys cvv keychain"
    ),
    Mark.PEOPLE: (
        "customers patients employees users people subscribers members clients personal medical salary salaries"
        " passports emails pii contacts visitors"
    ),
    Mark.OUTSIDE: (
        "external externally outside pastebin ngrok webhook ftp scp rsync public publicly internet attacker stranger"
        " gist dropbox thirdparty exfiltrate competitor telegram"
    ),
    Mark.TESTS: "test tests linter lint pytest unittest typecheck benchmark formatter",
}

# Nouns as often as verbs: they count as a verb where nothing else in the sentence is one, or where one is expected.
NOUNS_TOO = (
    "email mail message text phone contact post alert share note comment record order book tag label store log set"
    " move run build release start use mark stop copy draft pin link sign reserve load scale update change install"
    " script import invite forward report fix call test switch swap schedule sync commit merge patch close open"
    " approve clone sketch put reply announce bash sh powershell download export upload trigger launch answer"
)
BEFORE_A_VERB = "and then to now please will would should must also it let us ll"
