//! How many sequence records a second one core reads: `cargo run --release -p wire --example
//! read_rate`. Measured through the decoder, all 19 fields by slot.

use std::time::Instant;
use wire::element::{DraftElement, ElementId, Mapping};
use wire::ipfix::{
    Decoder, Encoder, Event, FieldSpec, Frame, Limits, TemplateSpec, Transport, frame,
};

fn main() {
    let mapping = Mapping::default();
    let iana = |id, length| FieldSpec::new(ElementId::iana(id), length);
    let draft = |d: DraftElement| FieldSpec::full(mapping.id(d), d.abstract_type());
    let mut fields = vec![iana(138, 8), iana(8, 4), iana(12, 4)];
    fields.extend([DraftElement::RdmaDestinationQp, DraftElement::RdmaPartitionKey].map(draft));
    fields.extend([iana(152, 8), iana(153, 8)]);
    fields.extend(DraftElement::ALL[..12].iter().map(|d| draft(*d)));
    let spec = TemplateSpec { id: 256, scope_count: 0, fields };

    for bound in [1400, 65535] {
        let mut encoder = Encoder::new(bound).expect("legal");
        let mut stream = Vec::new();
        let written = Instant::now();
        let mut writer = encoder.writer(1, 0, &mut stream);
        writer.template(&spec).expect("written");
        for n in 0..200_000u64 {
            writer
                .record(256, |r| {
                    spec.fields.iter().try_for_each(|f| {
                        r.unsigned(n & if f.length == 2 { 0xffff } else { u64::MAX })
                    })
                })
                .expect("written");
        }
        let count = writer.finish().records;
        let written = written.elapsed();

        let mut decoder = Decoder::new(Transport::File, mapping, Limits::default());
        let (mut read, mut sum, passes) = (0u64, 0u64, 20);
        let mut slots = Vec::new();
        let start = Instant::now();
        for _ in 0..passes {
            let mut rest = &stream[..];
            while let Ok(Frame::Message { octets, rest: next }) = frame(rest) {
                decoder
                    .message(octets, &mut |event| match event {
                        Event::Template { layout, .. } => {
                            slots = (0..19).filter_map(|i| layout.slot_at(i)?.unsigned()).collect();
                        }
                        Event::Data(set) => {
                            let slots: &[_; 19] = slots.as_slice().try_into().expect("19 fields");
                            for record in set.records {
                                read += 1;
                                for slot in slots {
                                    sum = sum.wrapping_add(record.unsigned(*slot));
                                }
                            }
                        }
                        _ => {}
                    })
                    .expect("read");
                rest = next;
            }
        }
        let elapsed = start.elapsed();
        assert_eq!(read, count * passes);
        println!(
            "messages of {bound}: {:.1} million records read a second, {:.1} written (sum {sum})",
            read as f64 / elapsed.as_secs_f64() / 1e6,
            count as f64 / written.as_secs_f64() / 1e6
        );
    }
}
