"""An exporter of PFC counters that does everything wrong, beside one that does not.

It shares no code with the program. For each Transport Session, in the order in which they begin, it
says what has to come of it, as a line of JSON: counters as [interface, received, priority, latest
total, readings, whether the last interval is exact], how many there are where they are too many to
list, and refused records by kind.
"""

import json
import struct

from hostile import PEN, Session, a_set, message

POINT, INGRESS, EGRESS = (138, 8, False), (252, 4, False), (253, 4, False)
TIME, PRIORITY, TOTAL, INSTANCE = (323, 8, False), (31, 1, True), (32, 8, True), (33, 8, True)
SCOPE, DATA = [POINT, INGRESS, PRIORITY], [TIME, TOTAL]
AT = 1_800_000_000_000
EXPECTED = []


def template(number, scope, data):
    fields = b""
    for element, length, enterprise in scope + data:
        fields += struct.pack("!HH", element | (0x8000 if enterprise else 0), length)
        if enterprise:
            fields += struct.pack("!I", PEN)
    count = len(scope) + len(data)
    if scope:
        return 3, struct.pack("!HHH", number, count, len(scope)) + fields
    return 2, struct.pack("!HH", number, count) + fields


def record(layout, **values):
    """A record of these fields; those of which nothing is said have a good value."""
    good = {POINT: 9, INGRESS: 1, EGRESS: 1, PRIORITY: 3, TIME: AT, TOTAL: 1, INSTANCE: 7}
    names = {"interface": (INGRESS, EGRESS), "priority": (PRIORITY,), "time": (TIME,),
             "total": (TOTAL,), "instance": (INSTANCE,)}
    for name, value in values.items():
        good.update({field: value for field in names[name]})
    return b"".join(good[field].to_bytes(field[1], "big") for field in layout)


class Exporter(Session):
    def __init__(self, case, counters=(), refused=(), count=None):
        super().__init__()
        self.layouts = {}
        EXPECTED.append({"case": case, "counters": list(counters), "refused": dict(refused),
                         "count": count})

    def layout(self, number, scope, data):
        kind, octets = template(number, scope, data)
        self.layouts[number] = scope + data
        self.send(message(a_set(kind, octets), sequence=self.sequence.get(1, 0)))

    def readings(self, number, *all_values):
        layout = self.layouts[number]
        for first in range(0, len(all_values), 500):
            some = all_values[first:first + 500]
            self.data(*(record(layout, **values) for values in some), number=number)


def templates_of_all_kinds():
    wrong = [
        (SCOPE + [EGRESS], DATA), (SCOPE, DATA + [EGRESS]), ([POINT, PRIORITY], DATA + [INGRESS]),
        ([POINT, PRIORITY], DATA), ([INGRESS, PRIORITY], DATA), ([POINT, INGRESS], DATA),
        ([POINT, INGRESS], DATA + [PRIORITY]), (SCOPE, [TOTAL]), (SCOPE + [TIME], [TOTAL]),
        (SCOPE + [TOTAL], [TIME]), (SCOPE, DATA + [TOTAL]), (SCOPE, DATA + [TIME]),
        (SCOPE + [PRIORITY], DATA), (SCOPE + [INGRESS], DATA), (SCOPE + [POINT], DATA),
        ([], SCOPE + DATA),
    ]
    s = Exporter("templates", [[1, True, 3, 1, 1, False]],
                 {"pfcTemplateNotOfRecord": 2 * len(wrong)})
    for number, (scope, data) in enumerate(wrong, 300):
        s.layout(number, scope, data)
        s.readings(number, {}, {"total": 2})
    s.layout(299, SCOPE, DATA)
    s.readings(299, {})
    s.close()


def priorities_that_are_none():
    s = Exporter("priorities", [[1, True, 7, 1, 1, False]], {"pfcPriorityOutOfRange": 248})
    s.layout(300, SCOPE, DATA)
    s.readings(300, *({"priority": priority} for priority in range(7, 256)))
    s.close()


def times_and_totals_that_jump():
    most = (1 << 64) - 1
    s = Exporter("jumps", [
        [1, True, 3, 5, 4, False], [2, True, 3, 99, 3, False], [3, False, 3, 4, 2, False],
    ], {"pfcEarlierReading": 1})
    s.layout(300, SCOPE, DATA)
    s.layout(301, SCOPE, DATA + [INSTANCE])
    s.layout(302, [POINT, EGRESS, PRIORITY], DATA + [INSTANCE])
    # Nobody vouches for anything, so whatever it says is a reading and nothing follows from two.
    s.readings(300, {"time": most, "total": most}, {"time": 0, "total": 0},
               {"time": AT, "total": 100}, {"time": AT, "total": 5})
    # One run of one counter, whose times go back: what was read before the latest is refused, and as
    # its total cannot be one from then, nobody vouches for the rest any more.
    s.readings(301, {"interface": 2, "total": 90}, {"interface": 2, "time": AT - 1, "total": 91},
               {"interface": 2, "time": 0, "total": 92},
               {"interface": 2, "time": AT + 1000, "total": 99, "instance": 8})
    # One run that goes back: more than a counter can count.
    s.readings(302, {"interface": 3, "total": 5},
               {"interface": 3, "time": AT + 1000, "total": 4})
    s.close()


def another_instance_with_every_record():
    s = Exporter("instances", [[1, True, 3, 20000, 20000, False]])
    s.layout(300, SCOPE, DATA + [INSTANCE])
    s.readings(300, *({"time": AT + n, "total": n, "instance": n} for n in range(1, 20001)))
    s.close()


def more_counters_than_there_is_room_for():
    s = Exporter("counters", refused={"pfcCountersFull": 28000}, count=2000)
    s.layout(300, SCOPE, DATA)
    s.readings(300, *({"interface": n} for n in range(30000)))
    # Those that are there go on.
    s.readings(300, *({"interface": n, "total": 2, "time": AT + 1} for n in range(2000)))
    s.close()


def sessions_that_share_what_is_left(room):
    first = Exporter("first of two", count=2000)
    first.layout(300, SCOPE, DATA)
    first.readings(300, *({"interface": n} for n in range(2000)))
    wait_until_taken(first)
    second = Exporter("second of two", refused={"pfcCountersFull": 2000 - room}, count=room + 500)
    second.layout(300, SCOPE, DATA)
    second.readings(300, *({"interface": n} for n in range(2000)))
    wait_until_taken(second)
    first.close()
    # What the first one had is there for others again.
    second.readings(300, *({"interface": n} for n in range(5000, 5500)))
    second.close()


def wait_until_taken(session):
    """Until the collector has read everything: it says nothing, so its store has to."""
    import sqlite3
    import time
    from hostile import DIRECTORY
    sent = sum(session.sequence.values())
    number = len(EXPECTED)
    while True:
        database = sqlite3.connect(DIRECTORY + "/data/results.db", timeout=60)
        readings, = database.execute(
            "SELECT coalesce(sum(readings), 0) FROM pfc_counters WHERE session = ?",
            (number,)).fetchone()
        refused, = database.execute(
            "SELECT coalesce(sum(records), 0) FROM refusals WHERE session = ?", (number,)).fetchone()
        database.close()
        if readings + refused >= sent:
            return
        time.sleep(0.01)


def main():
    good = Exporter("good", [[1, True, 3, 6, 7, True]])
    good.layout(256, SCOPE, DATA + [INSTANCE])
    cases = [
        templates_of_all_kinds, priorities_that_are_none, times_and_totals_that_jump,
        another_instance_with_every_record, more_counters_than_there_is_room_for,
        lambda: sessions_that_share_what_is_left(3000 - 1 - 2000),
    ]
    good.readings(256, {"total": 0})
    wait_until_taken(good)
    for n, case in enumerate(cases, 1):
        case()
        good.readings(256, {"time": AT + 1000 * n, "total": n})
    good.close()
    for expected in EXPECTED:
        print(json.dumps(expected), flush=True)


main()
