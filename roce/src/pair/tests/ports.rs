//! Tests of evidence by equal UDP source ports: the time at which each end was seen.

use super::*;

/// One connection's data were seen until another's answers began on the same port, with numbers near theirs by chance.
#[test]
fn an_endpoint_that_went_quiet_when_the_other_began_is_no_partner() {
    for (again, evidence) in [(false, Evidence::None), (true, Evidence::Port)] {
        let mut book = Book::new();
        let read_psn = |_: usize, _: SlotRef| Some(10_000);
        let pass = |book: &mut Book, packet: PacketSample| {
            let packet = PacketSample {
                psn: 10_000,
                ..packet
            };
            book.0.observe_with(&packet, 0, read_psn).unwrap()
        };
        for now in 1..40 {
            pass(&mut book, record(A, B, 0x11, 0x0a, 50_000, ms(now)));
        }
        let mut last = Evidence::None;
        for now in 100..200 {
            let answer = pass(&mut book, record(B, A, 0x18, 0x11, 50_000, ms(now)));
            if again {
                pass(&mut book, record(A, B, 0x11, 0x0a, 50_000, ms(now)));
            }
            last = book.0.pairing(answer, ms(now)).evidence();
        }
        assert_eq!(last, evidence, "goes on: {again}");
    }
}
