//! Lists of pairs as `npcc-switch pair import` reads them: lines of our own, or what `rdma -j res show qp` prints.
//!
//! Law: a list that contradicts itself is refused whole, and what names no peer is only suggested: packets must confirm it.

use std::collections::HashMap;
use std::net::IpAddr;

use npcc_api::pairs::ListedPair;
use npcc_appliance::control::pairs::{ControlCommandError, pair_command};
use serde::Deserialize;

/// Pairs given to the switch at once.
const MOST: usize = 65_536;

/// The pairs of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) pairs: Vec<ListedPair>,
    /// Nothing in the file says which host a connection leads to.
    pub(super) suggested: bool,
}

/// An entry of `rdma -j res show qp`. Queue pairs without a peer have no `rqpn`.
#[derive(Debug, Deserialize)]
struct Resource {
    #[serde(default)]
    ifname: String,
    lqpn: u32,
    rqpn: Option<u32>,
    #[serde(rename = "type")]
    kind: String,
}

/// The pairs a file holds; `hosts` are the host `rdma` ran on and its peer.
pub(super) fn read(text: &str, hosts: Option<(IpAddr, IpAddr)>) -> Result<List, String> {
    let list = if text.trim_start().starts_with('[') {
        let Some(hosts) = hosts else {
            return Err(
                "error: this is `rdma` output, which has no addresses: add --local and --remote"
                    .to_owned(),
            );
        };
        List {
            pairs: of_rdma(text, hosts)?,
            suggested: true,
        }
    } else {
        List {
            pairs: of_lines(text)?,
            suggested: false,
        }
    };
    if list.pairs.len() > MOST {
        return Err(format!(
            "error: {} pairs are more than are taken at once: split the list into parts of {MOST}",
            list.pairs.len()
        ));
    }
    Ok(list)
}

fn of_rdma(text: &str, (local, remote): (IpAddr, IpAddr)) -> Result<Vec<ListedPair>, String> {
    let resources: Vec<Resource> = serde_json::from_str(text)
        .map_err(|error| format!("error: not what `rdma -j res show qp` prints: {error}"))?;
    let connected = resources
        .iter()
        .filter(|one| matches!(one.kind.as_str(), "RC" | "UC"));
    let mut pairs = Vec::new();
    let mut by_peer: HashMap<u32, u32> = HashMap::new();
    let mut device: Option<&str> = None;
    for one in connected {
        let Some(rqpn) = one.rqpn.filter(|qpn| *qpn > 1) else {
            continue;
        };
        let first = *device.get_or_insert(&one.ifname);
        if first != one.ifname {
            return Err(format!(
                "error: the list has queue pairs of {first} and of {}, which have addresses of their own: \
                 import each by itself, as with `rdma -j res show qp link {first}/1`",
                one.ifname
            ));
        }
        if let Some(other) = by_peer.insert(rqpn, one.lqpn) {
            return Err(format!(
                "error: queue pairs {other} and {} both have peer {rqpn}, so the list has connections to several hosts and does not \
                 say which is whose: import lines with addresses, as `npcc-switch pair export` prints them",
                one.lqpn
            ));
        }
        let pair = ListedPair {
            src: local,
            dst: remote,
            dest_qp: rqpn,
            sender_qp: one.lqpn,
        };
        check(pair).map_err(|why| format!("error: {why}"))?;
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Returns true if the switch would accept the pair.
fn check(pair: ListedPair) -> Result<(), ControlCommandError> {
    pair_command(&pair, true).map(|_| ())
}

fn of_lines(text: &str) -> Result<Vec<ListedPair>, String> {
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let mut senders: HashMap<(IpAddr, IpAddr, u32), (u32, u32)> = HashMap::new();
    let mut pairs = Vec::new();
    for (line, number) in lines {
        let pair: ListedPair = serde_json::from_str(line)
            .map_err(|error| format!("error: line {number} is no pair: {error}"))?;
        check(pair).map_err(|why| format!("error: line {number}: {why}"))?;
        let key = (pair.src, pair.dst, pair.dest_qp);
        match senders.insert(key, (pair.sender_qp, number)) {
            Some((sender, _)) if sender == pair.sender_qp => continue,
            Some((sender, before)) => {
                return Err(format!(
                    "error: lines {before} and {number} give queue pair {} of {} two senders, {sender} and {}: keep the one that is so",
                    pair.dest_qp, pair.dst, pair.sender_qp
                ));
            }
            None => pairs.push(pair),
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 3));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2));

    fn pair(dest_qp: u32, sender_qp: u32) -> ListedPair {
        ListedPair {
            src: A,
            dst: B,
            dest_qp,
            sender_qp,
        }
    }

    fn line(dst: &str, dest_qp: u32, sender_qp: u32) -> String {
        format!(
            "{{\"src\":\"10.0.1.3\",\"dst\":\"{dst}\",\"dest_qp\":{dest_qp},\"sender_qp\":{sender_qp}}}\n"
        )
    }

    fn entry(device: &str, lqpn: u32, rqpn: u32) -> String {
        format!("{{\"ifname\":\"{device}\",\"lqpn\":{lqpn},\"rqpn\":{rqpn},\"type\":\"RC\"}}")
    }

    #[test]
    fn lines_of_ours_are_read_and_bad_ones_named() {
        let text = line("10.0.1.2", 17, 24) + "\n" + &line("10.0.1.2", 18, 25);
        let list = read(&(text.clone() + &text), None).unwrap();
        assert_eq!(list.pairs, [pair(17, 24), pair(18, 25)]);
        assert!(!list.suggested);
        let wrong = read("{\"src\":\"10.0.1.3\"}", None).unwrap_err();
        assert!(wrong.contains("line 1"), "{wrong}");
        let mixed = read(&line("2001:db8::1", 17, 24), None).unwrap_err();
        assert!(
            mixed.contains("line 1") && mixed.contains("two IPv4"),
            "{mixed}"
        );
        let group = read(&(text + &line("224.0.0.9", 17, 24)), None).unwrap_err();
        assert!(
            group.contains("line 4: 224.0.0.9 is not the address of one host"),
            "{group}"
        );
        let two = line("10.0.1.2", 17, 24) + &line("10.0.1.2", 17, 25);
        let two = read(&two, None).unwrap_err();
        assert!(two.contains("lines 1 and 2"), "{two}");
    }

    #[test]
    fn what_rdma_prints_is_read_with_the_hosts_beside_and_only_suggested() {
        let text = r#"[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"[ib_core]"},
{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":24,"rqpn":17,"type":"RC","state":"RTS","rq-psn":0,"sq-psn":0,"pid":7,"comm":"ib_write_bw"}]"#;
        let list = read(text, Some((A, B))).unwrap();
        assert_eq!((list.pairs, list.suggested), (vec![pair(17, 24)], true));
        assert!(read(text, None).unwrap_err().contains("--local"));
        let nobody = read(text, Some((A, std::net::Ipv4Addr::UNSPECIFIED.into())));
        assert!(nobody.unwrap_err().contains("0.0.0.0 is not the address"));
    }

    /// The queue pairs to two hosts were all given the one address of the command line, and believed.
    #[test]
    fn a_list_of_connections_to_several_hosts_is_refused() {
        let list = format!("[{},{}]", entry("mlx5_0", 24, 17), entry("mlx5_0", 25, 17));
        let refused = read(&list, Some((A, B))).unwrap_err();
        assert!(refused.contains("24 and 25 both have peer 17"), "{refused}");
        let list = format!("[{},{}]", entry("mlx5_0", 24, 17), entry("mlx5_1", 24, 18));
        let refused = read(&list, Some((A, B))).unwrap_err();
        assert!(refused.contains("mlx5_0 and of mlx5_1"), "{refused}");
    }
}
