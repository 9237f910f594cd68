"""Words that code uses for what people say in everyday words: `csrf` for `forged`, `duplicate` for `twice`.

A question is also searched for the related words of its own words, with a lower weight. The table holds
general vocabulary of software alone, and nothing of any one project. It leads from everyday words to words of
code, not back, because a question that names the code's word needs no help.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from retinue.codebase.parse.terms import stem

_RELATED = """
abandon: cancel abort discard
accept: allow permit
access: permission auth
account: user profile
add up: sum total aggregate
address: url uri path host endpoint
again: retry repeat
ahead: lookahead prefetch
alive: keepalive heartbeat ping
all at once: batch bulk parallel
allow: permit grant enable
animate: transition frame tick
another origin: cors cross origin
another site: cross origin csrf cors
answer: response reply result
appear: show visible render
appearance: style theme
argument: param option flag
arrive: receive incoming accept
ask: prompt query request
asleep: idle suspend
assemble: build compose
at the same time: parallel concurrent thread
attach: bind mount
attachment: upload multipart
authorise: auth permission
autocomplete: completion complete suggest
back up: backup snapshot dump
backend: upstream server
background: daemon worker cron async
balance: loadbalance upstream scheduler
batch: bulk chunk
before and after: hook middleware interceptor
big: large max size limit
block: deny reject ban
body: payload content
bottleneck: performance profile
break: fail crash disconnect
bring back: restore recover rollback
broken: corrupt invalid malformed
browser: useragent client
brute force: ratelimit throttle
bundle: pack archive
busy: lock contention
call back: callback handler
cancel: abort
carry on: resume continue
catch up: sync resync replay backlog
certificate: tls ssl cert
change: modify update edit
changed: diff modified dirty
check: validate verify
choose: select pick resolve
chosen: select pick resolve
clash: conflict collision
clean: sanitize purge cleanup
clean up: cleanup dispose teardown
client: remote peer
clock: time timer
colour: color theme style
combine: merge join concat
come back: return callback
command line: cli argv flag
commit: git revision
compare: diff equal cmp
compress: gzip zip deflate
compressed: gzip zip decompress
connect: dial conn socket
convert: transform parse cast
copy: clone duplicate
correct: fix valid
crash: panic recover exception
cross site: csrf xsrf cors origin
crowded: capacity limit
cut: truncate trim clip
cut off: truncate timeout limit
damage: corrupt
damaged: corrupt invalid
dangerous: unsafe sanitize escape
date: time timestamp
dead: expired stale
decide: choose select policy
deep: depth level
deeply: depth nested recursion
delay: sleep wait backoff
delete: remove unlink
destroy: dispose close drop
detect: guess sniff infer
die: exit panic kill
directory: dir folder
disconnect: close abort
disk: file persist storage fsync
done: finish complete
double: duplicate
down: unavailable unhealthy
download: fetch body response
downtime: graceful reload
draw: render paint
drop: discard remove evict
duplicate: dupe seen unique
edit: modify change update
empty: null blank none
encoding: charset encode unicode
encrypt: cipher crypto
end: finish close stop
enter: input prompt
environment: env
erase: delete clear
error: exception fail
every: interval periodic
exclusive: lock mutex
expire: ttl timeout
explain: describe help
explode: panic overflow
fake: mock stub
fall back: fallback default
fast: performance cache optimize
fetch: download get request
figure out: detect infer resolve
fill: populate
filter: match predicate
find: lookup search match
find out: detect resolve lookup
finish: complete done close
first time: init lazy once
fit: resize clamp
fix: patch repair
flush: sync fsync drain
fold: collapse
folder: dir directory path
follow: traverse redirect
forbid: deny disallow
forbidden: deny denied permission
forged: csrf xsrf forgery
forget: evict expire clear
form: field input
free: release dealloc
freeze: lock immutable block
full: capacity overflow limit
gather: collect aggregate
get rid: remove delete discard
get rid of: remove delete discard
give up: timeout cancel abort
given up: timeout cancel abort
gives up: timeout cancel abort
go wrong: error fail exception
grab: acquire fetch
graceful: shutdown drain
grammar: parser syntax
grow: resize expand
guess: infer detect
halt: stop abort
hand over: delegate pass transfer
hang: timeout block deadlock
happen: event trigger
harmful: unsafe sanitize
health: alive ping probe
heavy: expensive large
hidden: hide invisible
hide: hidden exclude mask
hold: keep store lock
how long: timeout duration ttl
how many: count limit max
how much: limit max size
how often: interval frequency period
identify: detect resolve
ignore: skip exclude
in front of: before middleware prefix
incoming: request inbound
inform: notify emit
initialise: init setup
initialize: init setup
input: stdin parse reader
insert: add put
install: setup register
interrupt: signal cancel abort
join: merge concat
jump: skip seek
keep: retain store preserve
keep track: track record state
key press: keyboard input
kill: terminate signal
language: locale syntax lang
large: big size limit
last: final latest
late: delay timeout lazy
lazy: defer lazily
leak: close release
leave out: skip exclude omit
leftover: remaining rest
less: reduce minimize
letter: char
limit: max threshold quota
line up: align pad
link: url href
list: enumerate index
listen: bind accept serve
load: read parse import
lock: mutex
log: logger
log in: login auth session
logged in: login auth session
login: auth authenticate session credential
long: length duration
look up: lookup find resolve
looks like: match detect sniff
lose: drop missing
made up: fake mock
mail: email smtp
make sure: ensure assert validate
mark: annotate flag tag
match: pattern compare
meaning: semantic
measure: metric stats
memory: mem heap alloc
merge: combine join
message: msg text
missing: absent notfound none
misspelled: suggestion typo similar closest
mistake: error invalid
mistyped: suggestion typo similar closest
money: price amount payment
monitor: watch metric
name: identifier label
neighbour: adjacent sibling
nested: depth recursive
network: net socket conn
newest: latest recent
notice: detect watch
notify: event emit callback
number: count num
obey: respect comply allowed
often: interval frequency period
old: stale expired legacy
once: singleton dedupe
one after another: sequence queue serial
only: restrict filter
open: create connect
order: sort priority
origin: cors host
other site: cross origin csrf cors
other sites: cross origin csrf cors
outdated: stale expired
outlived: expire ttl
outside: external
overload: limit throttle
overwrite: replace override
own: custom
page: pager paginate
page after page: paginate next cursor
parallel: thread concurrent worker
password: secret hidden credential
pause: delay sleep wait
pauses: delay sleep wait
pending: queue
percentage: percent ratio
permission: allow auth acl
pick: select choose
picked: select choose policy
picture: image
place: location position
play: start resume
plug in: plugin extension hook
point: position offset
polite: delay throttle
pop up: dialog modal prompt
pretend: mock fake dryrun
pretty: format indent
prevent: avoid guard
print: write output display
private: internal hidden
programming language: syntax lexer
protect: guard secure
prove: verify assert
proxy: forwarded upstream
pull: fetch
push: publish send
put: set insert append
put back: restore reset
question: prompt query
quick: fast
quit: exit
random: shuffle rand
rare: infrequent
reach: connect access
read: parse load reader
real client: clientip remote forwarded
receive: read accept incoming
recent: latest last
recognise: detect match
record: log entry
redo: retry replay
redraw: render refresh repaint
refuse: reject deny
reject: deny refuse
reload: restart refresh
remember: cache store persist session
remove: delete strip
repeat: retry loop duplicate
replace: substitute swap
replica: slave follower replication
request: req
resize: width height
restart: reload respawn
restore: recover rollback
restrict: limit allow
reuse: pool cache
right: correct match
roll back: rollback revert undo
room: space capacity
route: router path handler
run out: exceed limit exhausted
runs out: exceed limit exhausted
safe: secure sanitize escape
same page: duplicate fingerprint
sandbox: isolate restrict
save: persist store write
scramble: encrypt hash
screen: display terminal view
scroll: viewport offset
search: find query match
secret: token key credential
see: show visible
send: write emit post
server: serve listener
share: shared common
short: brief abbreviate
show: display render print
shut down: shutdown close stop
sign: signature hmac
signed: signature hmac verify
simulate: mock fake behavior
size: length bytes limit
skip: ignore exclude
sleep: delay wait
slow: timeout latency throttle
slow down: throttle delay ratelimit
snapshot: dump backup
source file: source path
speed: performance rate
spell: suggest typo
split: tokenize separate
spread: distribute balance
stale: expired outdated
start: init begin boot
start over: reset restart
stay: keep persist
stop: cancel abort shutdown
store: save persist
strange: invalid unexpected
strip: trim remove
struct: bind unmarshal decode
stuck: deadlock timeout
suggestion: suggest similar closest possibility
survive: recover catch
swap: replace exchange
switch: toggle
take effect: apply
take too long: timeout deadline
takes too long: timeout deadline
talk: communicate protocol
tell: notify report
temporary: temp tmp
terminal: tty console term
thread: worker concurrent executor
throw: raise
throw away: discard evict drop
thrown away: discard evict drop
tidy: cleanup format
time out: timeout deadline
times out: timeout deadline
too fast: throttle ratelimit
too long: timeout limit truncate
too many: limit max exceed
track: trace monitor
translate: i18n locale convert
tried again: retry repeat
tries again: retry repeat
trim: strip truncate
trust: safe verify allow
trusted: safe verify allow
try again: retry repeat
turn into: convert parse transform
turn off: disable
turn on: enable
twice: duplicate dupe seen unique
type in: input prompt
typed: input key
undo: rollback revert
unfinished: partial incomplete
unknown: notfound unrecognized
unpack: decode decompress extract
unsafe: dangerous sanitize
untrusted: sanitize escape safe
unused: dead stale
update: refresh modify
upload: multipart file form
user: account
version: release
visit: request fetch crawl
wait: timeout sleep block delay
wake: notify resume
walk: traverse recurse
warn: warning log
watch: monitor observe
width: columns size
without doing: dry preview
work out: resolve compute detect
worked out: resolve compute detect
wrap: wrapper fold
wrapped: wrapper fold
write: output save writer
written in: syntax detect
wrong: invalid error
"""


@cache
def _table() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Maps the stems of a word or a phrase to the stems of its related words."""
    rows = (line.partition(":") for line in _RELATED.strip().split("\n"))
    return {
        tuple(map(stem, key.split())): tuple(dict.fromkeys(map(stem, words.split())))
        for key, _, words in rows
    }


_LIGHT_WORDS = """
against actually able already another anyone apart around away back become becomes certain chosen come comes
decide decided else enough every everything given gives give goes going happen happens itself keep keeps kept
kind long longer many much often once place put puts right someone somebody soon sort take takes taken things
together tried tries try turn turned turns whether while
"""


@cache
def light_terms() -> frozenset[str]:
    """Return the stems of words that are rare in code but say little about what a question is about."""
    return frozenset(map(stem, _LIGHT_WORDS.split()))


class RelatedTerm(NamedTuple):
    """Where a related term comes from."""

    source: str
    """The first stem of the word or phrase."""
    is_phrase: bool


def related_terms(stems: list[str]) -> tuple[dict[str, RelatedTerm], frozenset[str]]:
    """Return the related terms of a row of stems, and the stems of the phrases that they come from.

    Terms that are in the row themselves are left out. A word of a phrase means nothing by itself: "given up"
    is about neither giving nor up.
    """
    table = _table()
    found: dict[str, RelatedTerm] = {}
    of_phrases: set[str] = set()
    for length in (3, 2, 1):
        for at in range(len(stems) - length + 1):
            row = tuple(stems[at : at + length])
            terms = table.get(row, ())
            if terms and length > 1:
                of_phrases.update(row)
            for term in terms:
                if term not in stems:
                    found.setdefault(term, RelatedTerm(row[0], length > 1))
    return found, frozenset(of_phrases)
