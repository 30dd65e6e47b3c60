//! Transcript of a driver's answers about a real or emulated device (`tests/pciguest/transcript.c`), compared with a model.
//!
//! The device has sent every frame before the next line, which the transcript waits for, so a model whose wire is given as much time must answer
//! the same.

use std::collections::HashMap;

use crate::answers::{Limits, RxOffload, TxOffload};
use crate::card::{Card, Picos};
use crate::profile::{Profile, Row};
use crate::ring::{Answer, Status, TxProfile};

/// Wire bytes of the transcript's frames: 60 bytes, preamble, FCS and gap.
const FRAME: u32 = 84;
/// Time in which the device has sent a burst.
const BURST_SENT: Picos = 2_000_000_000;
/// Bit/s of the device.
const RATE: u64 = 1_000_000_000;

/// Values of a line, by key.
type Values<'a> = HashMap<&'a str, &'a str>;

/// Splits a line into its name and its values.
fn parse(line: &str) -> (&str, Values<'_>) {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let values = rest.split(' ').filter_map(|word| word.split_once('='));
    (name, values.collect())
}

/// Compares a transcript with a profile whose device has a transmit ring of `descriptors`; returns each difference.
///
/// # Errors
/// The transcript has a line that cannot be read, or lacks one.
pub fn differences(
    transcript: &str,
    profile: &Profile,
    descriptors: u16,
) -> Result<Vec<String>, String> {
    let mut all = info(transcript, profile)?;
    all.extend(calls(transcript, profile)?);
    all.extend(replay(transcript, profile.tx(), descriptors)?);
    Ok(all)
}

fn values<'a>(transcript: &'a str, name: &str) -> Result<Values<'a>, String> {
    let mut lines = transcript.lines().map(parse);
    let line = lines.find(|(found, _)| *found == name);
    line.map(|(_, values)| values)
        .ok_or_else(|| format!("no line `{name}`"))
}

/// Compares `dev_info`. A row with two answers may have either.
fn info(transcript: &str, profile: &Profile) -> Result<Vec<String>, String> {
    let said = values(transcript, "info")?;
    let limits = |row: &Limits| format!("{},{},{}", row.min, row.max, row.align);
    let expected: [(&str, Vec<String>); 16] = [
        ("driver", of(&profile.driver, String::clone)),
        ("min_mtu", of(&profile.min_mtu, u16::to_string)),
        ("max_mtu", of(&profile.max_mtu, u16::to_string)),
        ("max_rx_pktlen", of(&profile.max_rx_pktlen, u32::to_string)),
        (
            "min_rx_bufsize",
            of(&profile.min_rx_bufsize, u32::to_string),
        ),
        ("max_rx_queues", of(&profile.max_rx_queues, u16::to_string)),
        ("max_tx_queues", of(&profile.max_tx_queues, u16::to_string)),
        ("rx_desc", of(&profile.rx_desc, limits)),
        ("tx_desc", of(&profile.tx_desc, limits)),
        ("rx_ring", of(&profile.rx_port, |row| row.ring.to_string())),
        ("tx_ring", of(&profile.tx_port, |row| row.ring.to_string())),
        (
            "rx_drop_en",
            of(&profile.rx_drop_en, |row| u8::from(*row).to_string()),
        ),
        ("tx_rs_thresh", of(&profile.tx_rs_thresh, u16::to_string)),
        (
            "tx_free_thresh",
            of(&profile.tx_free_thresh, u16::to_string),
        ),
        (
            "scatter",
            of(&profile.rx_offloads, |row| {
                row.contains(&RxOffload::Scatter).to_string()
            }),
        ),
        (
            "fast_free",
            of(&profile.tx_offloads, |row| {
                row.contains(&TxOffload::MbufFastFree).to_string()
            }),
        ),
    ];
    let differs = |(key, expected): &(&str, Vec<String>)| {
        let Some(found) = said.get(key) else {
            return Some(format!("info has no {key}"));
        };
        let same = expected.iter().any(|expected| expected == found);
        (!same).then(|| {
            format!(
                "info: {key}={found}; the profile has {}",
                expected.join(" or ")
            )
        })
    };
    Ok(expected.iter().filter_map(differs).collect())
}

/// Answers of a row, as a transcript writes them.
fn of<T>(row: &Row<T>, text: impl Fn(&T) -> String) -> Vec<String> {
    let answers = [Some(row.get()), row.other()];
    answers.into_iter().flatten().map(text).collect()
}

/// Compares return codes of calls that need no link.
fn calls(transcript: &str, profile: &Profile) -> Result<Vec<String>, String> {
    let mut differences = Vec::new();
    for (call, row) in [
        ("flow_ctrl_get", &profile.flow_ctrl_get),
        ("priority_flow_ctrl_set", &profile.priority_flow_ctrl_set),
    ] {
        let said = values(transcript, call)?;
        let found = said.get("rc").copied().unwrap_or_default();
        let expected = of(row, |outcome| outcome.code().to_string());
        if expected.iter().all(|expected| expected != found) {
            let expected = expected.join(" or ");
            differences.push(format!("{call}: rc={found}; the profile has {expected}"));
        }
    }
    Ok(differences)
}

/// Replays the bursts against a model with a ring of `descriptors`; returns each difference, with the line of the transcript.
fn replay(transcript: &str, profile: TxProfile, descriptors: u16) -> Result<Vec<String>, String> {
    let mut card = Card::new(profile, 1, descriptors, RATE);
    let mut now = 0;
    let mut differences = Vec::new();
    let mut bursts = 0;
    for (number, text) in transcript.lines().enumerate() {
        let bad = || format!("line {}: {text}", number + 1);
        let (found, expected) = match parse(text) {
            ("burst", values) => {
                let value = |key| values.get(key).and_then(|value: &&str| value.parse().ok());
                let (Some(offered), Some(taken), Some(held)) =
                    (value("offered"), value("taken"), value("held"))
                else {
                    return Err(bad());
                };
                bursts += 1;
                let took = card.burst(0, std::iter::repeat_n(FRAME, offered), now);
                now += BURST_SENT;
                card.advance(now, |_, _| {});
                (
                    format!("taken={took} held={}", card.ring(0).buffers()),
                    format!("taken={taken} held={held}"),
                )
            }
            // DPDK's own error, whatever the ring of the device.
            ("answers", _) if profile.status == Status::Absent => {
                let supported = text.contains('F') || text.contains('D');
                (format!("answers {supported}"), "answers false".to_owned())
            }
            ("answers", _) => (answers(&card), text.to_owned()),
            _ => continue,
        };
        if found != expected {
            differences.push(format!("{}; the model has: {found}", bad()));
        }
    }
    if bursts == 0 {
        return Err("no bursts".to_owned());
    }
    Ok(differences)
}

/// Answers of the model about every descriptor, as the transcript writes them.
fn answers(card: &Card) -> String {
    let ring = card.ring(0);
    let mut runs: Vec<(char, u32)> = Vec::new();
    for offset in 0..ring.descriptors() {
        let answer = match ring.status(offset) {
            Answer::Full => 'F',
            Answer::Done => 'D',
            Answer::Unsupported => 'E',
        };
        match runs.last_mut() {
            Some((last, length)) if *last == answer => *length += 1,
            _ => runs.push((answer, 1)),
        }
    }
    let runs = runs
        .iter()
        .map(|(answer, length)| format!(" {answer}{length}"));
    format!("answers{}", runs.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ring of the device; virtio frees all buffers at the burst that finds all but 32 descriptors complete.
    const DESCRIPTORS: u16 = 256;
    const LINES: &str = "\
info driver=net_virtio min_mtu=46 max_mtu=9698 max_rx_pktlen=9728 min_rx_bufsize=64 max_rx_queues=1 max_tx_queues=1 scatter=true fast_free=false rx_desc=32,32768,1 tx_desc=32,32768,1 rx_ring=0 tx_ring=0 rx_drop_en=0 tx_rs_thresh=0 tx_free_thresh=0
priority_flow_ctrl_set rc=-95
flow_ctrl_get rc=-95
burst offered=60 taken=60 held=60
answers E256
burst offered=60 taken=60 held=120
burst offered=60 taken=60 held=180
burst offered=60 taken=60 held=240
burst offered=60 taken=60 held=60
answers E256
";

    fn found(transcript: &str) -> Vec<String> {
        let profile = Profile::named("virtio").expect("its profile is there");
        differences(transcript, &profile, DESCRIPTORS).expect("the transcript is whole")
    }

    #[test]
    fn a_driver_that_frees_as_its_profile_says_differs_in_nothing() {
        assert_eq!(found(LINES), Vec::<String>::new());
    }

    /// Buffers are freed a burst sooner, not at all, as few as the burst needs, and more than are complete.
    #[test]
    fn a_driver_that_frees_at_another_point_or_another_number_differs() {
        for (right, wrong) in [
            ("taken=60 held=240\n", "taken=60 held=60\n"),
            (
                "held=240\nburst offered=60 taken=60 held=60\n",
                "held=240\nburst offered=60 taken=16 held=256\n",
            ),
            (
                "held=240\nburst offered=60 taken=60 held=60\n",
                "held=240\nburst offered=60 taken=60 held=256\n",
            ),
            (
                "held=240\nburst offered=60 taken=60 held=60\n",
                "held=240\nburst offered=60 taken=60 held=0\n",
            ),
        ] {
            assert!(LINES.contains(right), "{right}");
            let changed = LINES.replace(right, wrong);
            assert!(!found(&changed).is_empty(), "{wrong}");
        }
    }
}
