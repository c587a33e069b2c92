"""An exporter that does everything wrong, one Transport Session after the other.

It shares no code with the program. Each case says what has to come of it, as a line of JSON:
epochs as [domain, epoch, latest report, missing, outcome, requests], refused records by kind, and
words that the reason for the session's end has to contain.
"""

import json
import random
import socket
import sqlite3
import ssl
import struct
import sys
import time

PORT, DIRECTORY = int(sys.argv[1]), sys.argv[2]
PEN = 32473

# Element, length, enterprise: the record of 120 octets in the order that this exporter likes.
LAYOUT = [
    (2, 8, True), (1, 8, True), (8, 4, False), (12, 4, False), (138, 8, False),
    (21, 4, True), (22, 2, True), (152, 8, False), (153, 8, False), (3, 4, True),
    (4, 2, True), (5, 8, True), (6, 8, True), (7, 8, True), (8, 8, True),
    (9, 4, True), (10, 8, True), (11, 8, True), (12, 8, True),
]
FINAL = 1
UNVERIFIED = 32


def template(number, layout=LAYOUT):
    fields = b""
    for element, length, enterprise in layout:
        fields += struct.pack("!HH", element | (0x8000 if enterprise else 0), length)
        if enterprise:
            fields += struct.pack("!I", PEN)
    return struct.pack("!HH", number, len(layout)) + fields


def record(epoch=1, report=1, requests=None, flags=0, source=1, qp=17, point=1, start=1000,
           window=64, end=None, filled=0, pending=0, skipped=None, pkey=0xFFFF, layout=LAYOUT):
    requests = report * 10 if requests is None else requests
    values = {
        (2, True): report, (1, True): epoch, (8, False): 0x0A000000 | source,
        (12, False): 0x0A0000FE, (138, False): point, (21, True): qp, (22, True): pkey,
        (152, False): start, (153, False): start + requests if end is None else end,
        (3, True): window, (4, True): flags,
        (5, True): filled + pending if skipped is None else skipped, (6, True): filled,
        (7, True): 0, (8, True): 0, (9, True): pending, (10, True): 0, (11, True): requests,
        (12, True): 0,
    }
    return b"".join(
        values[element, enterprise].to_bytes(length, "big") for element, length, enterprise in layout
    )


def a_set(number, content):
    return struct.pack("!HH", number, 4 + len(content)) + content


def message(*sets, domain=1, sequence=0, version=10, length=None):
    body = b"".join(sets)
    length = 16 + len(body) if length is None else length
    return struct.pack("!HHIII", version, length, 1700000000, sequence, domain) + body


class Session:
    """One Transport Session; sequence numbers are kept where a case does not say otherwise."""

    begun = 0

    def __init__(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(DIRECTORY + "/ca.pem")
        context.load_cert_chain(DIRECTORY + "/agent.pem", DIRECTORY + "/agent.key")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        raw = socket.create_connection(("127.0.0.1", PORT), timeout=60)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = context.wrap_socket(raw, server_hostname="localhost")
        self.sequence = {}
        Session.begun += 1

    def send(self, octets):
        try:
            self.tls.sendall(octets)
        except OSError:
            pass  # The collector has had enough, which is its right.

    def define(self, number=256, layout=LAYOUT, domain=1, kind=2):
        self.send(message(a_set(kind, template(number, layout)), domain=domain,
                          sequence=self.sequence.get(domain, 0)))

    def data(self, *records, number=256, domain=1):
        at = self.sequence.get(domain, 0)
        self.sequence[domain] = at + len(records)
        self.send(message(a_set(number, b"".join(records)), domain=domain, sequence=at))

    def close(self, orderly=True):
        """Ends the session and waits until the collector has, too."""
        try:
            if orderly and isinstance(self.tls, ssl.SSLSocket):
                self.tls.unwrap()
            else:
                self.tls.shutdown(socket.SHUT_WR)
            while self.tls.recv(4096):
                pass
        except OSError:
            pass
        self.tls.close()


CASES = []


def case(epochs=(), refused=(), reason="closed by the exporter", close=True):
    def add(function):
        CASES.append((function, list(epochs), dict(refused), reason, close))
        return function
    return add


GOOD = [1, 1, 2, 0, "complete", 20]


def good(session, domain=1, number=256):
    session.define(number, domain=domain)
    session.data(record(), record(report=2, flags=FINAL), domain=domain, number=number)


@case([GOOD])
def a_good_one(s):
    good(s)


@case([[1, 1, 1, 0, "incomplete", 10]], {"fieldOutOfRange": 6})
def wrong_ids(s):
    s.define()
    s.data(record(epoch=0), record(report=0), record(epoch=9, window=0),
           record(epoch=9, window=(1 << 22) + 1), record(epoch=9, qp=1 << 24),
           record(epoch=9, qp=0xFFFFFFFF))
    s.data(record())


@case([[1, 1, 2, 0, "complete", 20]], {"keyChanged": 4})
def changed_keys(s):
    s.define()
    s.data(record())
    s.data(record(report=2, source=2), record(report=2, qp=18), record(report=2, pkey=1),
           record(report=2, point=2))
    s.data(record(report=2, flags=FINAL))


@case([[1, 1, 3, 1, "incomplete", 30]], {"decreased": 2, "immutableChanged": 3, "stale": 1})
def going_backwards(s):
    s.define()
    s.data(record(requests=20, filled=5))
    s.data(record(report=2, requests=19, filled=5), record(report=2, requests=21, filled=4),
           record(report=2, start=999), record(report=2, window=65),
           record(report=2, requests=30, filled=5, flags=UNVERIFIED))
    s.data(record(report=3, requests=30, filled=5), record(report=2, requests=25, filled=5))


@case([[1, 1, 1, 0, "invalid", 10], [1, 2, 1, 0, "invalid", 10], [1, 3, 1, 0, "complete", 10]],
      {"afterFinal": 1, "sameIdOtherContent": 1, "epochInvalid": 2, "stale": 0})
def after_final(s):
    s.define()
    s.data(record(flags=FINAL), record(epoch=2, source=2, flags=FINAL),
           record(epoch=3, source=3, flags=FINAL))
    s.data(record(report=2, flags=FINAL), record(report=3))
    s.data(record(epoch=2, source=2, requests=11, flags=FINAL), record(epoch=2, source=2))
    s.data(record(epoch=3, source=3, flags=FINAL))


@case([[1, 7, 1, 0, "incomplete", 10], [1, 8, 1, 0, "incomplete", 10]], {"orphan": 3})
def orphans(s):
    s.define()
    s.data(record(epoch=7))
    s.data(record(epoch=6, source=2), record(epoch=1, source=3), record(epoch=5, flags=FINAL))
    s.data(record(epoch=8, source=2))


@case([[1, 1, 2, 0, "complete", 20]])
def unknown_flags(s):
    s.define()
    s.data(record(flags=0xFFC0 & ~FINAL), record(report=2, flags=FINAL | 0x8000))


@case([[1, 1, 2, 0, "complete", 20]], {"inconsistent": 4})
def sums_that_do_not_add_up(s):
    s.define()
    s.data(record())
    s.data(record(report=2, skipped=3), record(report=2, pending=64),
           record(report=2, filled=20), record(report=2, pending=1, flags=FINAL))
    s.data(record(report=2, flags=FINAL))


@case([GOOD], {"templateNotOfProfile": 5})
def reduced_lengths_and_other_layouts(s):
    short = [(e, 4 if (e, x) == (11, True) else n, x) for e, n, x in LAYOUT]
    twice = LAYOUT + [(4, 2, True)]
    without = [field for field in LAYOUT if field != (3, 4, True)]
    for number, layout in ((300, short), (301, twice), (302, without)):
        s.define(number, layout)
    s.data(record(layout=short), record(layout=short, report=2), number=300)
    s.data(record(layout=twice), number=301)
    s.data(record(layout=without), record(layout=without, report=2), number=302)
    good(s)


@case([GOOD, [2, 1, 2, 0, "complete", 20]], {"foreignDomain": 19996})
def ten_thousand_domains(s):
    for domain in range(1, 10001):
        good(s, domain)


@case([GOOD])
def ten_thousand_templates(s):
    s.define()
    for first in range(0, 10000, 100):
        templates = b"".join(template(1000 + number, [(1, 8, False), (2, 8, False)])
                             for number in range(first, first + 100))
        s.send(message(a_set(2, templates), sequence=0))
    s.data(record(), record(report=2, flags=FINAL))


@case([[1, 1, 1, 0, "incomplete", 10], [1, 3, 1, 0, "incomplete", 10]])
def withdrawals(s):
    s.define()
    s.data(record())
    s.send(message(a_set(2, struct.pack("!HH", 256, 0)), sequence=1))
    s.data(record(report=2))  # Not known any more.
    s.send(message(a_set(2, struct.pack("!HH", 999, 0)), sequence=2))
    s.send(message(a_set(2, struct.pack("!HH", 2, 0)), sequence=2))
    s.data(record(epoch=2))
    # Defined, withdrawn and used in one message; then defined again.
    s.send(message(a_set(2, template(256) + struct.pack("!HH", 256, 0)), a_set(256, record(epoch=2)),
                   sequence=3))
    s.sequence[1] = 4
    s.define()
    s.data(record(epoch=3))


@case([[1, 1, 1, 0, "incomplete", 10]])
def a_template_redefined(s):
    s.define()
    s.data(record())
    s.define(256, LAYOUT[::-1])
    s.data(record(report=2))
    s.data(record(report=3, flags=FINAL))


@case([[1, 1, 3, 0, "complete", 30]])
def sequence_gaps(s):
    s.define()
    for report, sequence in ((1, 5), (2, 0xFFFFFFFF), (3, 3)):
        s.send(message(a_set(256, record(report=report, flags=FINAL if report == 3 else 0)),
                       sequence=sequence))


@case([GOOD], reason="16 malformed messages one after the other")
def zero_length_sets(s):
    good(s)
    for length in range(16):
        s.send(message(struct.pack("!HH", 256, length % 4) + bytes(4), sequence=2))
    s.define()
    s.data(record(report=3))


@case([GOOD])
def malformed_ones_between_good_ones(s):
    s.define()
    s.data(record())
    for _ in range(40):
        s.send(message(struct.pack("!HH", 256, 4000), sequence=1))
        s.send(message(a_set(2, template(256)), sequence=1))
    s.data(record(report=2, flags=FINAL))


@case([GOOD])
def giant_variable_lengths(s):
    s.define(400, [(82, 65535, False), (1, 8, False)])
    for value in (b"\xff\xff\xff", b"\xff\xff\xff" + bytes(60000), b"\xfe", b"\xff", b"",
                  b"\x00" + bytes(8), b"\xff\x00\x00" + bytes(8), b"\xff\x00"):
        s.send(message(a_set(400, value), sequence=0))
    # Nothing but zero lengths.
    s.define(401, [(82, 65535, False)])
    s.send(message(a_set(401, bytes(60000)), sequence=2))
    s.sequence[1] = 60002
    good(s)


@case([GOOD])
def templates_of_nothing(s):
    # No fields, never defined; scope of nothing; enterprise bit with element 0; zero lengths.
    s.send(message(a_set(2, struct.pack("!HH", 500, 0)), a_set(500, bytes(40))))
    s.send(message(a_set(3, struct.pack("!HHH", 501, 2, 0) + struct.pack("!HHHH", 1, 8, 2, 8)),
                   a_set(501, bytes(40))))
    s.send(message(a_set(2, struct.pack("!HHHHI", 502, 1, 0x8000, 4, PEN)), a_set(502, bytes(40))))
    s.send(message(a_set(2, struct.pack("!HHHH", 503, 1, 1, 0)), a_set(503, bytes(40))))
    s.send(message(a_set(2, struct.pack("!HH", 256, 500) + bytes(100))))
    s.send(message(a_set(2, struct.pack("!HHHH", 255, 1, 1, 4))))
    s.send(message(a_set(7, bytes(30)), a_set(255, bytes(3)), a_set(0, b"")))
    s.sequence[1] = 0
    good(s)


@case([[1, 1, 2, 0, "complete", 20], [2, 1, 2, 0, "complete", 20]])
def one_template_id_in_two_domains(s):
    s.define(256, LAYOUT, domain=1)
    s.define(256, LAYOUT[::-1], domain=2)
    for report in (1, 2):
        flags = FINAL if report == 2 else 0
        s.data(record(report=report, flags=flags), domain=1)
        s.data(record(report=report, flags=flags, layout=LAYOUT[::-1]), domain=2)


@case([GOOD])
def one_octet_at_a_time(s):
    for octets in (message(a_set(2, template(256))),
                   message(a_set(256, record() + record(report=2, flags=FINAL)))):
        for at in range(len(octets)):
            s.send(octets[at:at + 1])
            time.sleep(0.001)


@case([[1, 1, 1, 0, "incomplete", 10]], reason="in the middle of a message")
def half_a_message(s):
    s.define()
    s.data(record())
    s.send(message(a_set(256, record(report=2, flags=FINAL)), sequence=1)[:77])


@case([[1, 1, 1, 0, "incomplete", 10]], reason="cut", close=False)
def cut_without_a_word(s):
    s.define()
    s.data(record())
    s.close(orderly=False)


@case([GOOD], reason="version 9")
def another_version(s):
    good(s)
    s.send(message(version=9))
    s.data(record(report=3))


@case([GOOD], reason="length 15")
def a_length_below_a_header(s):
    good(s)
    s.send(message(length=15))


@case([], reason="GET / HTTP")
def another_protocol(s):
    s.send(b"GET / HTTP/1.1\r\nHost: collector\r\n\r\n")


@case([], reason="cut")
def no_tls_behind_the_handshake(s):
    # Not before the collector has its session, or it is the handshake that fails.
    database = sqlite3.connect(DIRECTORY + "/data/results.db")
    while database.execute("SELECT count(*) FROM sessions").fetchone()[0] < Session.begun:
        time.sleep(0.01)
    database.close()
    # What is under the TLS stream goes on without it.
    s.tls = socket.socket(fileno=s.tls.detach())
    s.send(message(a_set(2, template(256))) * 20)


@case([[1, e, 1, 0, "complete", 10] for e in range(1, 5001)], {"epochsFull": 1000, "orphan": 1})
def more_epochs_than_there_is_room_for(s):
    s.define()
    for first in range(1, 6001, 500):
        s.data(*(record(epoch=e, source=e % 200, qp=e, flags=FINAL)
                 for e in range(first, first + 500)))
    s.data(record(epoch=6000, source=0, qp=6000, report=2))


@case([], reason="")
def noise(s):
    chance = random.Random(4739)
    for _ in range(3000):
        sets = b"".join(
            struct.pack("!HH", chance.choice((2, 3, 256, 257, chance.randrange(65536))),
                        chance.choice((4, 8, 40, chance.randrange(80)))) + chance.randbytes(
                            chance.randrange(60))
            for _ in range(chance.randrange(4)))
        s.send(message(sets, domain=chance.choice((1, 2, chance.randrange(1 << 32))),
                       sequence=chance.randrange(1 << 32)))


@case([GOOD])
def a_good_one_after_all(s):
    good(s)


def plain():
    """IPFIX, and other things, where TLS is expected: no session comes of it."""
    for octets in (message(a_set(2, template(256))), b"\x16\x03\x01\xff\xff" + bytes(70000),
                   b"\x80\x2e\x01\x03\x01", b"SSH-2.0-x\r\n", b"\x00", b""):
        raw = socket.create_connection(("127.0.0.1", PORT), timeout=60)
        try:
            raw.sendall(octets)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass
        except OSError:
            pass
        raw.close()


def main():
    plain()
    for function, epochs, refused, reason, close in CASES:
        session = Session()
        function(session)
        if close:
            session.close()
        refused = {kind: records for kind, records in refused.items() if records}
        print(json.dumps({"case": function.__name__, "epochs": epochs, "refused": refused,
                          "reason": reason}), flush=True)
    plain()


if __name__ == "__main__":
    main()
