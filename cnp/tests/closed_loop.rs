//! Policies against senders that slow down: four DCQCN senders of 100G into a queue of 100G.
//!
//! The senders are the reference set of the issue (NVIDIA's defaults with the vendor variant of HPCC's simulator): alpha 1 at
//! the first CNP and updated every 1 us, a decrease at most every 4 us, an increase every 300 us, one step of fast recovery,
//! AI 20 Mb/s, HAI 200 Mb/s, no byte counter; or the same with alpha that starts anew. Frames pass the real parser, flow cache and control core.
//! Not shown here: marks and CNPs of the receiver (there are none), and pauses of the senders.

use crate::dcqcn::{Bed, Figures};
use npcc_cnp::policy::{PolicyKind, PolicyName};

fn run(policy: PolicyKind, phase_ns: u64) -> Figures {
    let figures = Bed::new(policy, phase_ns).run(60_000);
    // Nobody starves: the slowest of four has more than a third of a fair share.
    assert!(figures.shares.0 > 0.08 && figures.cnps > 0, "{figures:?}");
    figures
}

#[test]
fn npcc_holds_the_peak() {
    for phase in [0, 10_000] {
        let figures = run(PolicyName::Npcc.defaults(), phase);
        assert!(figures.peak <= 2_500_000, "{figures:?}");
        assert!(figures.utilisation >= 0.80, "{figures:?}");
    }
}

/// Peak of `model` with four senders of 100G into 100G: `deep`, below which a new queue is left alone, and what comes in 14 us. The law's own
/// bound has 50 us of the excess, 3.375 MB.
const PEAK: u64 = 2_025_000;

#[test]
fn model_holds_the_peak_and_keeps_the_link_busy() {
    for phase in [0, 1_000, 2_000, 3_900] {
        let figures = run(PolicyName::Model.defaults(), phase);
        assert!(figures.peak <= PEAK, "{figures:?}");
        assert!(figures.utilisation >= 0.99, "{figures:?}");
    }
}

/// One CNP per flow is tried before the rest: the queue is deeper than with senders that are known, and ECN alone would let it grow for
/// as long as the way to the receivers and back takes.
#[test]
fn unknown_senders_that_respond_are_detected_and_kept_at_their_rate() {
    for policy in [PolicyName::Npcc.defaults(), PolicyName::Model.defaults()] {
        for phase in [0, 1_000, 3_900, 10_000] {
            let figures = Bed::of_strangers(policy, phase).run(60_000);
            assert!(figures.peak <= 5_000_000, "{policy:?} {figures:?}");
            assert!(figures.utilisation >= 0.75, "{policy:?} {figures:?}");
        }
    }
}

/// The wire to the senders takes 20 us, where the default is for half of that: not knowing costs a third of the link.
#[test]
fn model_uses_the_length_of_the_near_side_that_replies_show() {
    let near = 20_000;
    let run = |replies| Bed::with_near(PolicyName::Model.defaults(), 0, near, replies).run(60_000);
    let (guessed, learned) = (run(None), run(Some(2 * near)));
    assert!(
        learned.utilisation >= 0.98 && learned.peak <= guessed.peak,
        "{learned:?}"
    );
    assert!(
        learned.utilisation > guessed.utilisation + 0.1,
        "{guessed:?} {learned:?}"
    );
}

/// An attacker on the near side answers in the senders' names, at once or as late as counts.
#[test]
fn made_up_replies_do_not_break_the_loop() {
    for replies in [1, 200_000, 4_990_000] {
        let figures =
            Bed::with_near(PolicyName::Model.defaults(), 0, 5_000, Some(replies)).run(60_000);
        assert!(
            figures.peak <= PEAK && figures.utilisation >= 0.99,
            "{replies}: {figures:?}"
        );
    }
}

/// It is not known beforehand if a card's alpha starts anew at the line rate: every episode then halves where 0.24 % was expected.
#[test]
fn senders_whose_alpha_starts_anew_are_held_and_keep_the_link_busy() {
    for (policy, peak, utilisation) in [
        (PolicyName::Npcc.defaults(), 2_500_000, 0.80),
        (PolicyName::Model.defaults(), PEAK, 0.99),
    ] {
        for phase in [0, 3_900, 10_000] {
            let figures = Bed::new(policy, phase).with_resets().run(60_000);
            assert!(figures.peak <= peak, "{policy:?} {figures:?}");
            assert!(figures.utilisation >= utilisation, "{policy:?} {figures:?}");
        }
    }
}

/// A pause of 300 us leaves 3.75 MB: the senders are not signalled for it, and the link is as busy afterwards as it would have been.
#[test]
fn a_pause_costs_no_more_than_its_own_time() {
    for policy in [PolicyName::Npcc.defaults(), PolicyName::Model.defaults()] {
        let run = |us| Bed::new(policy, 0).with_pause(30_000, us).run(60_000);
        let (without, with) = (run(0), run(300));
        // 300 us are half a percent.
        assert!(
            with.utilisation >= without.utilisation - 0.007,
            "{policy:?} {without:?} {with:?}"
        );
    }
}

/// Neighbours leave a quarter of the link. `model` aims at a time, and at four times as long a one where it goes by the port's rate: frames
/// waited for 175 us, and wait for 32; that costs it 3 % of the queue's share.
#[test]
fn a_queue_beside_others_is_held_by_what_it_gets() {
    for policy in [PolicyName::Npcc.defaults(), PolicyName::Model.defaults()] {
        let run = |is_signalled| {
            Bed::new(policy, 0)
                .beside_others(0.25, is_signalled)
                .run(60_000)
        };
        let (untold, signalled) = (run(false), run(true));
        let most = if policy.which() == PolicyName::Model {
            0.7
        } else {
            // Its thresholds are the port's: knowing the departures moves only the order of its rounds, 6.7 % here.
            1.1
        };
        assert!(
            signalled.wait <= most * untold.wait,
            "{untold:?} {signalled:?}"
        );
        assert!(
            signalled.utilisation >= untold.utilisation - 0.03,
            "{untold:?} {signalled:?}"
        );
    }
}
