//! The starter configuration: refused as it comes, taken once everything is attested.

use observe::provision::Match;
use observe::report::StreamKey;
use rocescope::config::{ATTESTATIONS, StarterStream, starter};
use wire::frame::{Addresses, Family, Layer, Namespace};

use super::{device, errors};

fn key(last: u8, namespace: Namespace) -> StreamKey {
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source[..4].copy_from_slice(&[10, 0, 0, 1]);
    destination[..4].copy_from_slice(&[10, 0, 0, last]);
    let addresses = Addresses { family: Family::V4, source, destination };
    StreamKey { addresses, namespace, qp: 0x00ff_ffff, pkey: 0x8001 }
}

fn found(key: StreamKey) -> StarterStream {
    StarterStream { key, seen: "4096 requests".into(), misfit: None, questions: Vec::new() }
}

// SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
#[test]
fn a_starter_is_refused_by_each_condition_until_all_are_attested() {
    let text = starter(&[found(key(2, Namespace::default()))], Layer::Outer, None);
    let refused = errors(&text);
    assert_eq!(refused.len(), ATTESTATIONS.len());
    for (error, condition) in refused.iter().zip(ATTESTATIONS) {
        let expected = format!("stream[0].attest.{}: false, expected true", condition.name);
        assert!(error.contains(&expected), "{error}");
        assert!(text.contains(condition.establish) && text.contains(condition.brief));
    }
    for condition in ATTESTATIONS {
        let stated = format!("{} = false", condition.name);
        let all_but_one =
            text.replace("= false", "= true").replace(&stated.replace("false", "true"), &stated);
        assert_eq!(errors(&all_but_one).len(), 1, "{}", condition.name);
    }
    assert_eq!(errors(&text.replace("= false", "= true")), [""; 0]);
}

// SEQ-4.1
#[test]
fn an_attested_starter_provisions_exactly_the_streams_that_were_found() {
    let tags = [(0, 0), (1, 0), (4094, 4094), (0, 7)];
    for layer in Layer::ALL {
        let segments: &[u32] = match layer {
            Layer::Outer | Layer::Erspan => &[0],
            Layer::Gre => &[0, 0x0200_0000, 0x02ff_ffff],
            Layer::Vxlan => &[0x0100_0000, 0x01ff_ffff],
            Layer::Geneve => &[0x8000_0000, 0x80ff_ffff],
        };
        let mut keys = Vec::new();
        for &(outer_vlan, inner_vlan) in &tags {
            for &segment in segments {
                keys.push(key(2, Namespace { outer_vlan, inner_vlan, segment }));
            }
        }
        let mut v6 = key(3, keys[0].namespace);
        v6.addresses = Addresses { family: Family::V6, source: [0xfd; 16], destination: [1; 16] };
        keys.push(v6);
        let streams: Vec<StarterStream> = keys.iter().copied().map(found).collect();
        let read = device(&starter(&streams, layer, None).replace("= false", "= true"));
        assert_eq!(read.observation.layer, layer);
        let named: Vec<StreamKey> = read
            .provisioned
            .iter()
            .map(|entry| match entry.rule.streams {
                Match::Exact { addresses, qp, pkey, namespace } => {
                    StreamKey { addresses, namespace: namespace.unwrap(), qp, pkey }
                }
                Match::Range { .. } => panic!("expected streams only"),
            })
            .collect();
        assert_eq!(named, keys, "{layer:?}");
    }
}

#[test]
fn a_stream_that_does_not_fit_is_a_comment_with_its_reason() {
    let misfit = |last, reason: &str| StarterStream {
        misfit: Some(reason.into()),
        ..found(key(last, Namespace::default()))
    };
    let text = starter(
        &[
            misfit(3, "it carries RDMA READ\n[[rule]]"),
            found(key(2, Namespace::default())),
            found(key(4, Namespace { segment: 0x0100_0005, ..Namespace::default() })),
            StarterStream { seen: "a\nb = 1".into(), ..found(key(5, Namespace::default())) },
        ],
        Layer::Outer,
        None,
    );
    let read = device(&text.replace("= false", "= true"));
    assert_eq!(read.provisioned.len(), 2);
    for comment in [
        "#   10.0.0.1 to 10.0.0.3, qp 16777215, pkey 0x8001: it carries RDMA READ\\n[[rule]]\n",
        "#   10.0.0.1 to 10.0.0.4, qp 16777215, pkey 0x8001: its segment 0x01000005 is none of \
         layer outer\n",
        "# a\\nb = 1\n",
    ] {
        assert!(text.contains(comment), "{comment}\n{text}");
    }
}

#[test]
fn a_stream_to_a_group_is_no_stream_of_two_hosts() {
    let mut group = key(2, Namespace::default());
    group.addresses.destination[0] = 224;
    let text = starter(&[found(group)], Layer::Outer, None);
    assert!(text.contains("its addresses are not those of two hosts"), "{text}");
    assert_eq!(device(&text).provisioned.len(), 0);
}

#[test]
fn a_starter_has_room_for_as_many_streams_as_were_found() {
    let streams: Vec<StarterStream> =
        (0..65_537).map(|qp| found(StreamKey { qp, ..key(2, Namespace::default()) })).collect();
    let text = starter(&streams, Layer::Outer, None).replace("= false", "= true");
    assert_eq!(device(&text).provisioned.len(), 65_537);
}
