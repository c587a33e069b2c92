"""A client of NETCONF over SSH from PyPI against the server of the tests:
    ssh.py PORT PRIVATE_KEY QUEUES
Ends with an assertion where something is not as it has to be."""

import sys

from lxml import etree
from ncclient import manager
from ncclient.operations import RaiseMode, RPCError

PORT, KEY, QUEUES = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
IF = "urn:ietf:params:xml:ns:yang:ietf-interfaces"
PUSH = "urn:ietf:params:xml:ns:yang:ietf-yang-push"
SN = "urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications"
NMDA = "urn:ietf:params:xml:ns:yang:ietf-netconf-nmda"
DS = "urn:ietf:params:xml:ns:yang:ietf-datastores"
# Pipelined; more than what SSH holds for a session that does not read.
REQUESTS = 150


def connect():
    return manager.connect(
        host="127.0.0.1", port=PORT, username="alice", key_filename=KEY, hostkey_verify=False,
        allow_agent=False, look_for_keys=False, timeout=60,
    )


def queues(text):
    return len(etree.fromstring(text.encode()).xpath("//*[local-name()='interval-id']"))


def refused(call, tag):
    try:
        call()
    except RPCError as error:
        assert error.tag == tag, (error.tag, tag)
    else:
        raise AssertionError(f"not refused, expected {tag}")


session = connect()
assert "urn:ietf:params:netconf:base:1.1" in session.server_capabilities
subtree = ("subtree", f'<interfaces xmlns="{IF}"/>')
assert queues(session.get(filter=subtree).xml) == QUEUES
assert queues(session.get(filter=("xpath", ({"if": IF}, "/if:interfaces"))).xml) == QUEUES
one = f'<interfaces xmlns="{IF}"><interface><name>Ethernet1</name></interface></interfaces>'
assert 0 < queues(session.get(filter=("subtree", one)).xml) < QUEUES
data = etree.fromstring(
    f'<get-data xmlns="{NMDA}" xmlns:ds="{DS}"><datastore>ds:operational</datastore>'
    f'<subtree-filter><interfaces xmlns="{IF}"/></subtree-filter></get-data>'
)
assert queues(session.dispatch(data).xml) == QUEUES
assert "nacm" in session.get_config(source="running").data_xml
assert "module ietf-pfc-queue-telemetry" in session.get_schema("ietf-pfc-queue-telemetry").data
config = f'<config xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><interfaces xmlns="{IF}"/></config>'
refused(lambda: session.edit_config(target="running", config=config), "operation-not-supported")
refused(lambda: session.lock("running"), "operation-not-supported")

# One session ends another.
other = connect()
session.kill_session(other.session_id)
try:
    other.get(filter=subtree)
except Exception as error:
    assert not isinstance(error, (AssertionError, RPCError)), error
else:
    raise AssertionError("the session goes on, expected its end")

# Requests without end, and notifications meanwhile: none is lost.
session.raise_mode = RaiseMode.NONE
subscribe = etree.fromstring(
    f'<establish-subscription xmlns="{SN}" xmlns:yp="{PUSH}">'
    f'<yp:datastore xmlns:ds="{DS}">ds:operational</yp:datastore>'
    f'<yp:datastore-subtree-filter><interfaces xmlns="{IF}"/></yp:datastore-subtree-filter>'
    "<yp:on-change/></establish-subscription>"
)
established = session.dispatch(subscribe)
assert "<id" in established.xml, established.xml
first = session.take_notification(timeout=20)
assert "push-update" in first.notification_xml, first.notification_xml
# The test begins to publish when it sees this.
print("subscribed", flush=True)
session.async_mode = True
waiting = [session.get(filter=subtree) for _ in range(REQUESTS)]
for call in waiting:
    call.event.wait(60)
    assert call.reply is not None, "no reply in time"
    assert queues(call.reply.xml) == QUEUES
session.async_mode = False
seen = []
while not seen or seen[-1] < 20:
    notification = session.take_notification(timeout=20)
    assert notification is not None, f"after {seen}"
    found = etree.fromstring(notification.notification_xml.encode())
    seen += [int(e.text) for e in found.xpath("//*[local-name()='interval-id']")]
assert seen == list(range(2, 21)), seen
session.close_session()
print("good")
