"""Words that code uses for what people say in everyday words: `csrf` for `forged`, `duplicate` for `twice`.

A question is also searched for the related words of its own words, with a lower weight. The table holds
general vocabulary of software alone, and nothing of any one project. It leads from everyday words to words of
code, not back, because a question that names the code's word needs no help.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from retinue.codebase.parse.terms import STOP_WORDS, stem

_RELATED = """
abandon: cancel abort discard
accept: allow permit
access: permission auth
accidentally: guard prevent safe
account: user profile
account for: count measure
add up: sum total aggregate
address: url uri path host endpoint
again: retry repeat
agree: negotiate handshake accept
ahead: lookahead prefetch
alive: keepalive heartbeat ping
all at once: batch bulk parallel
allow: permit grant enable
already there: exist cache duplicate
animate: transition frame tick
announce: notify publish emit
another chance: retry
another origin: cors cross origin
another site: cross origin csrf cors
another try: retry
answer: response reply result
appear: show visible render
appearance: style theme
approve: confirm accept
argument: param option flag
arrange: layout sort order
arrive: receive incoming accept
arrow key: cursor key navigation
as few as possible: minimize reduce
as soon as: ready immediate
ask: prompt query request
asks before: confirm prompt
asleep: idle suspend
assemble: build compose
at once: concurrent parallel simultaneous
at random: random shuffle jitter
at startup: init boot bootstrap
at the same time: parallel concurrent thread
attach: bind mount
attachment: upload multipart
attack: exploit vulnerability sanitize
authorise: auth permission
autocomplete: completion complete suggest
back up: backup snapshot dump
backend: upstream server
background: daemon worker cron async
bail out: abort exit return
balance: loadbalance upstream scheduler
batch: bulk chunk
beautiful: pretty format
before and after: hook middleware interceptor
before it starts: init setup prepare
big: large max size limit
blank: empty whitespace space
block: deny reject ban
body: payload content
bottleneck: performance profile
break: fail crash disconnect
bring back: restore recover rollback
broken: corrupt invalid malformed
browser: useragent client
brute force: ratelimit throttle
build up: accumulate append
bundle: pack archive
bundle up: pack archive
busy: lock contention
call back: callback handler
call itself: recursive recursion
cancel: abort
capital letters: uppercase case sensitive
careful: safe guard
carry on: resume continue
case insensitive: ignorecase lower fold
catch up: sync resync replay backlog
caught: handle except recover
certificate: tls ssl cert
change: modify update edit
changed: diff modified dirty
chat: message conversation
check: validate verify
choose: select pick resolve
chosen: select pick resolve
circular: cycle recursion loop
clash: conflict collision
clean: sanitize purge cleanup
clean up: cleanup dispose teardown
client: remote peer
clock: time timer
colour: color theme style
combine: merge join concat
come back: return callback
comma separated: csv delimiter list
command line: cli argv flag
commit: git revision
compare: diff equal cmp
complain: error warn report
compress: gzip zip deflate
compressed: gzip zip decompress
configuration: config setting
confirm: prompt verify acknowledge
connect: dial conn socket
content type: mime header media
control c: sigint interrupt signal
convert: transform parse cast
cope: handle tolerate
copy: clone duplicate
correct: fix valid
crash: panic recover exception
credentials: auth authorization password token
cross site: csrf xsrf cors origin
crowded: capacity limit
ctrl c: sigint interrupt signal
current directory: cwd pwd working
customise: config override custom
customize: config override custom
cut: truncate trim clip
cut off: truncate timeout limit
damage: corrupt
damaged: corrupt invalid
dangerous: unsafe sanitize escape
date: time timestamp
daylight saving: timezone dst
dead: expired stale
debounce: throttle delay
decide: choose select policy
deep: depth level
deeply: depth nested recursion
defend: protect guard validate
delay: sleep wait backoff
delete: remove unlink
destroy: dispose close drop
detect: guess sniff infer
die: exit panic kill
dig: traverse recurse nested
directory: dir folder
disappear: remove hide expire
disconnect: close abort
discover: find scan lookup
disk: file persist storage fsync
distinguish: detect kind type
do nothing: noop skip ignore
does not exist: missing notfound absent
does not fit: truncate overflow wrap
done: finish complete
double: duplicate
down: unavailable unhealthy
download: fetch body response
downtime: graceful reload
draw: render paint
drop: discard remove evict
dry run: dryrun preview simulate
duplicate: dupe seen unique
edit: modify change update
emoji: unicode width grapheme
empty: null blank none
empty line: blank newline
encoding: charset encode unicode
encrypt: cipher crypto
end: finish close stop
ends up: result final output
enter: input prompt
environment: env
erase: delete clear
error: exception fail
every: interval periodic
every time: always each
evict: expire lru remove
exceed: limit over max
exclusive: lock mutex
exhausted: empty limit pool
exit code: status returncode exit
expire: ttl timeout
explain: describe help
explode: panic overflow
fail fast: abort immediate
fake: mock stub
fall apart: crash error
fall back: fallback default
fast: performance cache optimize
fetch: download get request
figure out: detect infer resolve
file extension: suffix ext
file type: mime extension
fill: populate
filled in: populate default
filter: match predicate
find: lookup search match
find out: detect resolve lookup
finish: complete done close
first come: fifo queue
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
fresh: new etag modified
from scratch: new reset rebuild
full: capacity overflow limit
fuzzy: approximate similar match
garbage: invalid cleanup gc
gather: collect aggregate batch
get rid: remove delete discard
get rid of: remove delete discard
gets called: invoke trigger callback
gets in: allow auth
gets lost: drop missing
gets stuck: hang deadlock timeout
give up: timeout cancel abort
given time: timeout deadline duration
given up: timeout cancel abort
gives up: timeout cancel abort
go back: return previous undo
go through: iterate traverse pass
go wrong: error fail exception
goes away: disconnect close remove
goes down: fail unavailable disconnect
goes through: iterate traverse pass
goes wrong: error fail exception
going away: close shutdown
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
healthy: alive health ready
heartbeat: ping keepalive
heavy: expensive large
held back: buffer queue defer
help page: usage help
help text: usage help description
hidden: hide invisible
hide: hidden exclude mask
hold: keep store lock
host name: hostname dns host
how big: size length max
how deep: depth level max
how far: offset distance depth
how fast: rate speed interval
how large: size length max
how long: timeout duration ttl
how many: count limit max
how much: limit max size
how often: interval frequency period
human readable: format pretty humanize
identify: detect resolve
idle: inactive timeout keepalive
idle connection: keepalive pool timeout
ignore: skip exclude
illegal: invalid forbidden
in advance: prefetch precompute ahead
in charge: manager owner
in front of: before middleware prefix
in order: sort sequence priority
in parallel: concurrent thread worker
in the background: async daemon worker
in the middle: between partial
in use: active busy lock
inactive: idle disabled
incoming: request inbound
indented: indentation whitespace pretty
infinite: endless loop recursion
infinite loop: cycle recursion
inform: notify emit
initialise: init setup
initialize: init setup
input: stdin parse reader
insert: add put
install: setup register
interactive: prompt tty stdin
interrupt: signal cancel abort
isolate: sandbox separate
join: merge concat
jump: skip seek
keep: retain store preserve
keep alive: keepalive persistent
keep out: exclude filter deny
keep track: track record state
keep waiting: block poll
kept out: exclude redact mask
key press: keyboard input
keyboard shortcut: key binding keymap
kill: terminate signal
language: locale syntax lang
large: big size limit
last: final latest
last longer: ttl expire timeout
last modified: mtime timestamp
lasts: lifetime duration ttl expire
late: delay timeout lazy
later: defer delay schedule
lazy: defer lazily
leak: close release
leave out: skip exclude omit
left open: close leak
left out: skip exclude omit ignore
left over: remaining rest
leftover: remaining rest
less: reduce minimize
let go: release free
letter: char
lifetime: ttl expire duration
limit: max threshold quota
line break: newline wrap crlf
line ending: newline crlf eol
line number: lineno row
line up: align pad
link: url href
list: enumerate index
listen: bind accept serve
listing: index directory list
load: read parse import
load balance: balancer upstream
lock: mutex
log: logger
log in: login auth session
logged: log logger
logged in: login auth session
logged out: logout session
login: auth authenticate session credential
long: length duration
long time: timeout slow
look for: search find
look like: match format
look up: lookup find resolve
looked up: lookup find resolve
looks like: match detect sniff
lose: drop missing
lost: missing drop disconnect
lost connection: reconnect disconnect
lower case: lowercase lower
made up: fake mock
mail: email smtp
make sure: ensure assert validate
make up: generate compose
mark: annotate flag tag
match: pattern compare
maximum: max limit
meaning: semantic
measure: metric stats
memory: mem heap alloc
merge: combine join
message: msg text
minified: compress minify
minimum: min least
misbehave: error fault
missing: absent notfound none
misspelled: suggestion typo similar closest fuzzy
mistake: error invalid
mistyped: suggestion typo similar closest fuzzy
money: price amount payment
monitor: watch metric
mute: silent quiet
name: identifier label
name clash: collision duplicate conflict
neighbour: adjacent sibling
nested: depth recursive
network: net socket conn
new line: newline
newest: latest recent
next try: retry
nothing is found: notfound empty missing
notice: detect watch
notify: event emit callback
nullable: optional null
number: count num
obey: respect comply allowed
offline: disconnect unavailable
often: interval frequency period
old: stale expired legacy
on demand: lazy request
on disk: file path cache
on the fly: dynamic runtime
once: singleton dedupe
one after another: sequence queue serial
one at a time: lock serial mutex queue
one by one: iterate sequence
only: restrict filter
only once: once singleton idempotent
open: create connect
operating system: platform os
order: sort priority
order in which: sort priority sequence
origin: cors host
other site: cross origin csrf cors
other sites: cross origin csrf cors
out of date: stale expired outdated
out of memory: oom alloc limit
outcome: result status
outdated: stale expired
outlived: expire ttl
outside: external
over and over: repeat loop throttle
overlap: intersect conflict
overload: limit throttle
overwrite: replace override
own: custom
padding: pad align space
page: pager paginate
page after page: paginate next cursor
parallel: thread concurrent worker
passed on: forward delegate propagate
password: secret hidden credential
pause: delay sleep wait
pauses: delay sleep wait
pending: queue
percentage: percent ratio
permanent: persistent lifetime
permission: allow auth acl
pick: select choose
picked: select choose policy
picture: image
place: location position
plain text: raw text
play: start resume
plug in: plugin extension hook
point: position offset
polite: delay throttle
pop up: dialog modal prompt
postpone: defer delay
precedence: priority order override
preserve: keep retain
pressed: key click
pretend: mock fake dryrun
pretend to be: impersonate useragent mock
pretty: format indent
prevent: avoid guard
print: write output display
private: internal hidden
private key: secret pem key
privilege: permission role admin
programming language: syntax lexer
protect: guard secure
prove: verify assert
proxy: forwarded upstream
pull: fetch
push: publish send
put: set insert append
put back: restore reset
put together: combine assemble build
question: prompt query
quick: fast
quit: exit
random: shuffle rand
rare: infrequent
reach: connect access
read: parse load reader
read only: readonly immutable
readable: pretty format
real client: clientip remote forwarded
receive: read accept incoming
recent: latest last
recognise: detect match
record: log entry
recover: restore rescue
redo: retry replay
redraw: render refresh repaint
refuse: reject deny
regular expression: regex pattern
reject: deny refuse
reload: restart refresh
remember: cache store persist session
remove: delete strip
reopen: reconnect open
repair: fix recover
repeat: retry loop duplicate
replace: substitute swap
replica: slave follower replication
request: req
resize: width height
respond: response reply
restart: reload respawn
restore: recover rollback
restrict: limit allow
retry: again backoff attempt
reuse: pool cache
right: correct match
roll back: rollback revert undo
room: space capacity
root folder: root base
rotate: rollover
route: router path handler
run out: exceed limit exhausted
runs out: exceed limit exhausted
safe: secure sanitize escape
same name: duplicate conflict collision
same origin: cors origin
same page: duplicate fingerprint
same time: concurrent parallel
sandbox: isolate restrict
save: persist store write
scheduled: cron timer queue
scramble: encrypt hash
screen: display terminal view
scroll: viewport offset
search: find query match
secret: token key credential
see: show visible
seen before: cache duplicate visited
send: write emit post
send back: response return reply
sensitive: secret redact case
sent twice: duplicate idempotent
server: serve listener
settled: resolve complete
share: shared common
short: brief abbreviate
shorten: truncate abbreviate
show: display render print
shrink: reduce resize
shut down: shutdown close stop
side by side: diff parallel
side effect: mutate
sign: signature hmac
signed: signature hmac verify
silence: quiet suppress
silent: quiet suppress
similar: like fuzzy distance
simulate: mock fake behavior
simultaneous: concurrent parallel
size: length bytes limit
skip: ignore exclude
sleep: delay wait
slow: timeout latency throttle
slow down: throttle delay ratelimit
snapshot: dump backup
source file: source path
special characters: escape quote
speed: performance rate
speed up: cache optimize performance
spell: suggest typo
split: tokenize separate
split up: divide chunk partition
spread: distribute balance
squeeze: compress shrink
stack overflow: depth recursion limit
stale: expired outdated
stand for: alias represent
standard input: stdin
standard output: stdout
start: init begin boot
start over: reset restart
start up: init boot
starting point: entry main
status code: status http
stay: keep persist
stop: cancel abort shutdown
stop early: abort break
stopped: cancel abort shutdown
store: save persist
stored: save persist cache
strange: invalid unexpected
strip: trim remove
struct: bind unmarshal decode
stuck: deadlock timeout
suggestion: suggest similar closest possibility
supply: provide
suppress: silence ignore
survive: recover catch
swap: replace exchange
switch: toggle
symbolic link: symlink
system call: syscall trace
take apart: parse split
take effect: apply
take over: override hijack
take too long: timeout deadline
taken apart: parse split
taken from: read source
takes too long: timeout deadline
talk: communicate protocol
talk to: connect client
tell: notify report
temporary: temp tmp
terminal: tty console term
thread: worker concurrent executor
throttle: rate limit
throw: raise
throw away: discard evict drop
thrown away: discard evict drop
tidy: cleanup format
time out: timeout deadline
time zone: timezone tz utc
times out: timeout deadline
tokens: lexer token
too big: limit max exceed overflow
too deep: depth limit recursion
too fast: throttle ratelimit
too large: limit max exceed overflow
too long: timeout limit truncate
too many: limit max exceed
too often: throttle limit rate
too slow: timeout throttle
top folder: root origin base
top level: root global
track: trace monitor
trailing slash: redirect path strip
translate: i18n locale convert
tried again: retry repeat
tries again: retry repeat
trim: strip truncate
trust: safe verify allow
trusted: safe verify allow
try again: retry repeat
tunnel: proxy connect
turn into: convert parse transform
turn off: disable
turn on: enable
turned off: disable
turned on: enable
twice: duplicate dupe seen unique
type in: input prompt
typed: input key
typo: suggestion similar
typos: suggestion similar distance
unavailable: down offline
uncaught: unhandled exception
unchanged: same notmodified
under the hood: internal
undo: rollback revert
unfinished: partial incomplete
unhandled: uncaught exception default
unknown: notfound unrecognized
unknown command: suggestion notfound
unpack: decode decompress extract
unreachable: unavailable error
unsafe: dangerous sanitize
unsupported: invalid notimplemented
untrusted: sanitize escape safe
unused: dead stale
unwanted: filter ignore
up to date: fresh sync current
update: refresh modify
upload: multipart file form
upper case: uppercase upper
upper limit: max limit
use up: exhaust consume
used up: exhausted limit
user: account
validated: check verify schema
version: release
visit: request fetch crawl
wait: timeout sleep block delay
wait for: await join block
waited for: await join block
waiting: pending block queue
wake: notify resume
walk: traverse recurse
warn: warning log
watch: monitor observe
way in: entry
well formed: valid syntax
what kind: type detect
when done: finish complete callback
when idle: idle timeout
width: columns size
wildcard: glob star pattern
window size: resize width height
with care: safe
without doing: dry preview
without end: infinite max limit
without losing: preserve keep
work out: resolve compute detect
worked out: resolve compute detect
working directory: cwd
wrap: wrapper fold
wrapped: wrapper fold
write: output save writer
written in: syntax detect
wrong: invalid error
wrong order: sort sequence
wrong password: auth invalid credential
wrong type: mismatch invalid cast
"""


@cache
def _table() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Maps the stems of a word or a phrase to the stems of its related words that are searched for."""
    rows = (line.partition(":") for line in _RELATED.strip().split("\n"))
    return {
        tuple(map(stem, key.split())): tuple(
            dict.fromkeys(stem(word) for word in words.split() if word not in STOP_WORDS)
        )
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
