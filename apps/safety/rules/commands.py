"""Phrases that are grave by themselves: commands and acts with a score and its reason, and places.

A command's expression is tried only where one of its plain hints occurs; every gap in an expression is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A phrase that scores by itself. `hint`: one of these has to occur before the expression is tried at all."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    score: int
    reason: str


def _command(hints: str, pattern: str, score: int, reason: str) -> Command:
    return Command(tuple(hints.split("|")), re.compile(pattern), score, reason)


_SHELL = r"(?:ba|z|da|k|fi)?sh|python3?|perl|ruby|node|php|powershell|iex"
COMMANDS: tuple[Command, ...] = (
    _command("rm", r"\brm\s+(?:-{1,2}[\w-]+\s+){0,4}-{1,2}(?:\w*[rf]|recursive|force)", 95, "removes recursively"),
    _command("rm", r"\brm\s+\S", 70, "removes files"),
    _command(
        "rmrf|rm rf|removeitem|remove-item",
        r"\brm ?rf\b|remove-?item\b.{0,80}-(?:recurse|force)",
        95,
        "removes recursively",
    ),
    _command("rmtree|rimraf|unlinksync", r"rmtree|rimraf|rm ?sync|unlink ?sync", 92, "removes a whole tree"),
    _command(
        "drop",
        r"\bdrop\W{0,3}(?:if exists\W)?(?:table|database|schema|collection|keyspace|index|view|column|user|role|all|db)",
        93,
        "drops a part of a database",
    ),
    _command("truncate", r"\btruncate\W{1,3}(?:table\b|only\b|\w+_\w+|users|orders|customers)", 93, "empties a table"),
    _command("delete from", r"\bdelete from\b(?!.{0,200}\bwhere\b)", 93, "deletes every row of a table"),
    _command("where", r"\bwhere\W{1,3}(?:1\W{1,3}1\b|true\b|'?1'?\W{1,3}'?1)", 93, "a condition that is always true"),
    _command("delete from", r"\bdelete from\b", 75, "deletes rows of a table"),
    _command("update", r"\bupdate\W\w+\Wset\b(?!.{0,200}\bwhere\b)", 78, "changes every row of a table"),
    _command("dropdatabase|flushall|flushdb|flush all", r"dropdatabase|flush ?all|flush ?db", 93, "empties a database"),
    _command(
        "push",
        r"\bpush\b(?=.{0,80}(?:--force|\s-f\b|--mirror|\s\+\w)).{0,80}\b(?:main|master|prod\w*|release)\b",
        90,
        "rewrites a shared branch",
    ),
    _command("push", r"\bpush\b.{0,80}(?:--force|\s-f\b|--mirror|--delete|\s\+\w)", 80, "rewrites what others have"),
    _command("force", r"\bforce[ -]?push", 80, "rewrites what others have"),
    _command(
        "git|reset|clean|branch",
        r"\bgit\b.{0,40}(?:reset\W.{0,20}--hard|clean\W.{0,20}-\w*f|branch\W.{0,20}-d\b|filter-branch|stash (?:drop|clear)|reflog expire)",
        75,
        "throws away work",
    ),
    _command(
        "curl|wget|fetch|http|base64|download|iwr",
        rf"(?:curl|wget|fetch|iwr|https?:|base64|download).{{0,400}}(?:\||into|to|with|&&|;|<\()\s{{0,3}}(?:sudo\s|a\s|the\s)?(?:{_SHELL}|shell)\b",
        94,
        "runs what it downloads or decodes",
    ),
    _command(
        "eval|exec|system|subprocess|popen|child_process|child process",
        r"\b(?:eval|exec|os\.system|popen|execsync|execfile)\s?\(|child_?\s?process|subprocess\.",
        75,
        "runs code that is only known then",
    ),
    _command("process", r"\bprocess\.exit|__import__", 70, "ends or takes over its own process"),
    _command(
        "mkfs|fdisk|wipefs|diskpart|dd |parted|/dev/",
        r"\b(?:mkfs|wipefs|diskpart|fdisk|parted)\b|\bdd\b.{0,80}\bof=|>\s?/dev/(?:sd|nvme|hd|disk)",
        96,
        "overwrites a disk",
    ),
    _command(
        "format",
        r"\bformat(?:s|ting|ted)?\b.{0,30}\b(?:disk|disks|drive|drives|volume|partition|c:|d:|usb|sd card|hard)",
        95,
        "formats a disk",
    ),
    _command(
        "chmod|chown",
        r"\bch(?:mod|own)\b.{0,40}(?:777|-r\b|-rf?\b|a\+rwx|\+s\b|u\+s)",
        80,
        "opens up files to everybody",
    ),
    _command("(){|fork bomb|:()", r":\(\)\s?\{|fork bomb", 96, "brings the machine down"),
    _command(
        "shutdown|reboot|halt|poweroff|init 0|init 6",
        r"\b(?:shutdown|reboot|poweroff|init [06])\b",
        75,
        "brings a machine down",
    ),
    _command("kill", r"\bkill(?:all)?\b.{0,10}(?:-9|-kill|-1\b|pid)", 70, "ends a process by force"),
    _command(
        "iptables|ufw|setenforce|nft",
        r"iptables\s.{0,10}-f\b|ufw disable|setenforce 0|nft flush",
        92,
        "takes a safeguard away",
    ),
    _command(
        "disable|turn off|switch off|stop|bypass|circumvent|evade|deactivate|disabling|turning off",
        r"\b(?:disabl\w+|turn\w* off|switch\w* off|stop\w*|bypass\w*|circumvent\w*|evad\w+|deactivat\w+|suppress\w*)\b.{0,40}\b(?:audit\w*|firewall|backup\w*|monitoring|logging|antivirus|mfa|2fa|two.factor|safety|guard\w*|alert\w*|selinux|approval\w*|security|safeguard\w*|gatekeeper)\b",
        92,
        "takes a safeguard away",
    ),
    _command("kubectl", r"\bkubectl\b.{0,40}\bdelete\b", 80, "deletes from a cluster"),
    _command(
        "kubectl|namespace",
        r"\bdelete\b.{0,30}\b(?:namespace|ns|pv|pvc|--all)\b",
        93,
        "deletes a whole part of a cluster",
    ),
    _command(
        "terraform|tofu|pulumi|cdk|helm|docker|podman",
        r"\b(?:terraform|tofu|pulumi|cdk)\b.{0,30}\bdestroy\b|\b(?:docker|podman)\b.{0,20}\bprune\b|\bhelm\b.{0,20}\b(?:uninstall|delete)\b",
        90,
        "takes infrastructure down",
    ),
    _command(
        "aws|s3|gsutil|gcloud|az ",
        r"\b(?:s3|s3api|gsutil)\b.{0,30}\b(?:rb|rm|delete-bucket)\b|\bgcloud\b.{0,40}\bdelete\b|\baz\b.{0,40}\bdelete\b|terminate-instances",
        90,
        "deletes in a cloud account",
    ),
    _command("del |rd |erase ", r"\b(?:del|rd|rmdir|erase)\b.{0,20}/[sq]\b", 93, "removes recursively"),
    _command(
        "vssadmin|wbadmin|bcdedit|reg delete", r"vssadmin|wbadmin|bcdedit|\breg delete\b", 94, "takes a safeguard away"
    ),
    _command("crontab", r"\bcrontab\b.{0,10}-r\b", 75, "removes scheduled jobs"),
    _command(
        "nc |ncat|/dev/tcp|reverse shell|bash -i|socat",
        r"\bn(?:c|cat)\b.{0,40}-e\b|/dev/tcp|reverse shell|bash -i\b|socat\b.{0,60}exec",
        96,
        "opens the machine to somebody else",
    ),
    _command("authorized_keys|authorized keys|sudoers", r"authorized[_ ]keys|sudoers", 88, "lets somebody in"),
    _command(
        "xp_cmdshell|outfile|load_file",
        r"xp_cmdshell|into outfile|load_file",
        92,
        "leaves the database for the machine",
    ),
    _command("sudo|su -|root", r"\bsudo\b|\bsu -|\bas root\b", 68, "acts as the administrator of a machine"),
    _command(
        "publish|upload|docker push|twine",
        r"\b(?:npm|cargo|poetry|gem) publish\b|\btwine upload\b|\bdocker push\b",
        66,
        "publishes a package",
    ),
    _command(
        "ignore|disregard|override",
        r"\b(?:ignor\w+|disregard\w*|overrid\w+)\b.{0,30}\b(?:instruction\w*|polic\w+|rule\w*|approval|safety)",
        90,
        "goes around its instructions",
    ),
    _command(
        "without",
        r"\bwithout\b.{0,20}\b(?:backup|backups|asking|approval|confirmation|confirming|permission|review|a copy|telling)",
        72,
        "goes around a check",
    ),
)


def _act(score: int, reason: str, *patterns: str) -> Command:
    return Command((), re.compile("|".join(patterns)), score, reason)


_ADMIN = r"(?:admin(?:istrator|istrative)?|root|super ?user|super ?admin|sys ?admin|privileged|owner(?=[- ]?level)|domain admin)"
_SUM = r"(?:[$\u20ac\u00a3\u00a5]\s?\d|\d\s?(?:[$\u20ac\u00a3\u00a5]|k?\s?(?:eur|euros?|usd|dollars?|gbp|pounds?|chf|francs?|yen|btc|bitcoins?|eth|usdc)\b))"
_PLACE = (
    r"(?:safe|vault|strong ?room|doors?|gates?|lockers?|cabinets?|tills?|cash (?:box|register|drawer)|warehouse|garage"
    r"|building|entrance|barriers?|hatch|cages?|cells?|server room|premises|shutters?)"
)
_GUARD = (
    r"(?:alarms?|smoke (?:detectors?|alarms?)|cameras?|cctv|sprinklers?|sensors?|burglar|motion detectors?|interlocks?"
    r"|emergency (?:stop|brake|lights?)|life support|ventilat(?:ion|ors?)|oxygen|gas supply|safety valves?|guard rails?)"
)
_MACHINE = (
    r"(?:motors?|engines?|robots?|robot(?:ic)? arms?|drones?|forklifts?|furnaces?|ovens?|boilers?|reactors?|lasers?|saws?"
    r"|cranes?|conveyors?|valves?|pumps?|turbines?|missiles?|rockets?|explosives?|vehicles?|cars?|trucks?|weapons?|guns?|elevators?|centrifuges?)"
)
# Acts that are grave with any verb: accounts and access, physical things, money, obligations.
ACTS: tuple[Command, ...] = (
    _act(
        78,
        "creates or gives administrator rights",
        rf"\b(?:creat|add|mak|set\w* up|regist|provision|open|activat|enabl|generat|new)\w*\b.{{0,40}}\b{_ADMIN}[ -]?(?:level )?"
        r"(?:accounts?|users?|logins?|roles?|access|rights?|privileges?|permissions?|tokens?|keys?|members?|credentials?)\b",
        r"\b(?:mak|promot|appoint|turn|invit|upgrad|set|assign|add|put)\w*\b.{0,40}\b(?:an?|as|into|to(?: the)?|the role(?: of)?) "
        r"(?:(?:domain |global |full |system )?(?:admins?|administrators|superusers?|super admins?|sudoers?|wheel)\b(?! note)"
        r"|(?:an? )?(?:new )?administrator\s*$)",
        rf"\b(?:verif|select|choos|list|rank|mark|classif|confirm|recogni[sz]|approv)\w*\b.{{0,40}}\bas (?:an? |the )?(?:new )?(?:{_ADMIN}|owner)\b",
        rf"\b(?:get|fetch|obtain|request|find)\w* (?:\w+ ){{1,3}}?(?:an? )?(?:new )?{_ADMIN} (?:accounts?|logins?|access|rights?|roles?|tokens?)\b",
        rf"\b(?:creat|add|regist|provision|appoint|promot|hir)\w*\b.{{0,30}}\b{_ADMIN}s?\b(?! (?:panel|page|console|guide|docs?|notes?|team|dashboard|area|settings|ui|handbook|manual|e-?mail))",
    ),
    _act(
        68,
        "changes who may do what",
        r"\b(?:giv|grant|allow|let|provid|hand|extend|open|enabl|activat)\w*\b.{0,50}\b(?:(?:full |remote |root |write |edit |physical |unlimited )?access(?! to (?:the )?(?:faq|help))"
        r"|permissions?|privileges|admin rights|(?:key ?cards?|badges?|door codes?|pass ?codes?|combinations?|master keys?)\b|keys to\b)",
    ),
    _act(
        68,
        "opens an account",
        r"\bopen\w* (?:an?|another|up) (?:[\w-]+ ){0,3}(?:accounts?|lines? of credit|credit lines?|wallets?|positions?|overdrafts?)\b",
    ),
    _act(
        70,
        "opens a way in",
        r"\bopen\w*\b.{0,20}\b(?:ports? \d|firewalls?|remote (?:sessions?|desktops?|logins?))",
    ),
    _act(
        66,
        "creates an account",
        r"\b(?:creat|open|set\w* up|register|provision|add)\w*\b.{0,30}\b(?:user|service|staff|employee|login|system|ssh|database|back ?door)[ -]?(?:accounts?|logins?|access)\b",
    ),
    _act(
        70,
        "changes how an account is secured",
        r"\b(?:chang|reset|set|updat|replac|edit|swap|overwrit)\w*\b.{0,40}\b(?:pass ?words?|pass ?codes?|pins?|recovery (?:e-?mail|phone|codes?|address)|security questions?|mfa|2fa|two[- ]factor|authenticator)\b",
    ),
    _act(
        68,
        "gives a key or a device access",
        r"\b(?:add|regist|enrol|install|upload|insert)\w*\b.{0,40}\b(?:ssh keys?|public keys?|pass ?keys?|authenticators?|api keys?|oauth apps?|certificates?|trusted devices?)\b",
    ),
    _act(
        72,
        "acts as another person",
        r"\b(?:log|sign)\w*\s?(?:in|on)\b.{0,20}\bas\b|\btak\w* over\b.{0,30}\b(?:accounts?|sessions?|identity|numbers?)\b|\bport\w*\b.{0,20}\bphone number\b",
    ),
    _act(
        66,
        "changes who has an account",
        r"\b(?:clos|lock|freez|unfreez|merg|transferr?|terminat)\w*\b.{0,40}\baccounts?\b",
    ),
    _act(
        75,
        "leaves a place open",
        rf"\b(?:open|leav|keep|prop|unlock|unbolt|unlatch|releas|unseal|break|forc)\w*\b.{{0,40}}\b{_PLACE}\b(?! (?:settings?|page|menu|tab))|\b{_PLACE}\b.{{0,20}}\b(?:open|unlocked|ajar|unattended|unsecured)\b",
    ),
    _act(
        70,
        "lets people in",
        rf"\b(?:let|allow|admit|bring|escort|wav|buzz)\w*\b.{{0,40}}\b(?:in|into|inside|through)\b.{{0,20}}\b{_PLACE}\b",
    ),
    _act(
        66,
        "makes something public",
        r"\b(?:shar|expos|mak|open)\w*\b.{0,50}\b(?:with|to|for) (?:the (?:whole )?(?:world|public)|everyone|everybody|anyone|anybody)\b",
    ),
    _act(
        66,
        "spends money",
        rf"\b(?:book|order|reserv|subscrib|commit|pledg|bid|purchas|renew)\w*\b.{{0,50}}{_SUM}",
    ),
    _act(
        90,
        "takes a safeguard of people or places away",
        rf"\b(?:disarm|silenc|switch|mut|disabl|turn|cut|shut|remov|cover|block|deactivat|stop|bypass)\w*\b.{{0,30}}\b{_GUARD}\b",
    ),
    _act(
        68,
        "moves or starts a machine",
        rf"\b(?:start|run|turn\w* on|switch\w* on|activat|fir|launch|ignit|releas|driv|fly|mov|operat|engag|open|clos|heat|accelerat|steer)\w*\b.{{0,30}}\b{_MACHINE}\b(?! (?:report|status|manual|page))",
    ),
    _act(
        88,
        "treats a person",
        r"\b(?:administer|inject|prescrib|dispens|dos)\w*\b.{0,40}\b(?:\d+\s?(?:mg|ml|mcg|units?)|medic\w+|drugs?|doses?|insulin|morphine|opioids?|patients?|vaccines?)\b"
        r"|\b(?:chang|increas|doubl|set|rais)\w*\b.{0,30}\b(?:dosage|dose|prescription|infusion)\b",
    ),
    _act(
        70,
        "moves money",
        rf"\b(?:send|mov|put|giv|hand|releas|wir|top\w* up|forward|deliver|spend|stak|bet|tip|bid)\w*\b.{{0,50}}(?:{_SUM}|\b(?:money|funds|cash|bitcoins?|payouts?|gift cards?|crypto)\b)",
        rf"\b(?:get|fetch|retriev|collect|tak|draw|pull)\w*\b.{{0,30}}(?:{_SUM}|\b(?:money|funds|cash)\b).{{0,20}}\b(?:from|out of|back)\b",
    ),
    _act(
        74,
        "destroys something",
        r"\bget\w* rid of\b",
    ),
    _act(
        72,
        "changes where money goes",
        r"\b(?:chang|updat|set|replac|edit|add|swap|redirect)\w*\b.{0,40}\b(?:iban|bank (?:account|details)|account number|sort code|pay ?outs?|payees?|beneficiar\w+|direct debits?|standing orders?|payment (?:details|method|address)|wallet address)\b",
    ),
    _act(
        68,
        "changes what is owed",
        r"\b(?:rais|increas|lift|remov|chang)\w*\b.{0,30}\b(?:credit|spending|transfer|withdrawal|payment|overdraft|card|refund)s? limits?\b"
        r"|\b(?:waiv|writ\w* off|forgiv|cancel)\w*\b.{0,30}\b(?:fees?|debts?|invoices?|penalt\w+|balances?)\b"
        r"|\b(?:tak\w* out|apply for|sign\w* for|grant|approv)\w*\b.{0,20}\b(?:loans?|mortgages?|credit lines?|overdrafts?)\b",
    ),
    _act(
        66,
        "binds the company",
        r"\b(?:sign|accept|agree|conclud|enter)\w*\b.{0,30}\b(?:contracts?|leases?|settlements?|purchase orders?|binding offers?|non-?disclosure|terms of sale)\b",
    ),
)
PATHS = re.compile(
    r"(?:^|[\s'\"=:(])(?:/(?:etc|usr|bin|sbin|boot|lib|dev|proc|sys|root|var/lib|windows)\b|/(?=[\s'\"*]|$)|~/?(?=\s|$)|c:\\|\\\\|%systemroot%)"
)
SECRET_PLACES = re.compile(
    r"\.ssh\b|id_(?:rsa|ed25519)|(?:^|[\s/'\"=(])\.env\b|\.aws\b|\.pem\b|/etc/shadow|\.kube\b|\.netrc|\.pgpass"
    r"|(?:private|api|secret|signing|access|encryption)[ _-]?keys?\b|seed phrase|wallet seed|card numbers?\b|\bssn\b"
)
WHERE_OUT = re.compile(r"https?://|ftp://|\bs3://|\bto [\w.+-]+@[\w-]+\.\w")
GLUED = re.compile(
    r"(delete|destroy|erase|truncate|wipe|purge|remove|overwrite|drop|nuke|rmrf|exfiltrate)"
    r"(all|from|every|the|table|database|user|account|record|customer|backup|file|prod|data)"
)
BIG_SUM = re.compile(r"\b\d{2,3}[.,' ]?\d{3}(?:[.,]\d{2})?\b|\b\d+\s?(?:k|m|million|thousand)\b")
