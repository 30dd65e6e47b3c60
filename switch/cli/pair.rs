//! `npcc-switch pair add|del|import`: queue pairs known by other means than the switch's own.

use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use serde::Deserialize;

use super::Failure;
use npcc_appliance::control::orders::NpccOrder;
use npcc_appliance::manage::client;
use npcc_appliance::manage::protocol::{Reply, Request};

#[derive(Debug, Args)]
pub(super) struct PairArgs {
    #[command(subcommand)]
    what: What,
    /// Management socket of the switch
    #[arg(long, global = true, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say that two queue pairs are one connection
    Add {
        /// Who sends the data
        src: IpAddr,
        /// Who receives them
        dst: IpAddr,
        /// Queue pair at the receiver, such as 17 or 0x11
        #[arg(value_parser = number)]
        dest_qp: u32,
        /// Queue pair at the sender
        #[arg(value_parser = number)]
        sender_qp: u32,
    },
    /// Forget the pair of these packets, both ways
    Del {
        /// Who sends them
        src: IpAddr,
        /// Who receives them
        dst: IpAddr,
        /// Queue pair at the receiver
        #[arg(value_parser = number)]
        dest_qp: u32,
    },
    /// Print the pairs that are known, as `pair import` reads them: a line of JSON each, with evidence and age beside
    Export {
        /// Only those known by this evidence
        #[arg(long, value_name = "NAME")]
        evidence: Option<String>,
    },
    /// Add the pairs of a file: JSON lines {"src","dst","dest_qp","sender_qp"}, or what `rdma -j res show qp` prints
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Address of the host `rdma` ran on
        #[arg(long, requires = "remote")]
        local: Option<IpAddr>,
        /// Address of its peer
        #[arg(long, requires = "local")]
        remote: Option<IpAddr>,
    },
}

/// A number, decimal or hexadecimal with 0x.
pub(super) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write a number such as 17 or 0x11".to_owned())
}

/// A line of ours.
#[derive(Debug, Deserialize)]
struct Line {
    src: IpAddr,
    dst: IpAddr,
    dest_qp: u32,
    sender_qp: u32,
}

/// An entry of `rdma -j res show qp`. Queue pairs without a peer have no `rqpn`.
#[derive(Debug, Deserialize)]
struct Resource {
    lqpn: u32,
    rqpn: Option<u32>,
    #[serde(rename = "type")]
    kind: String,
}

pub(super) fn run(args: &PairArgs) -> Result<(), Failure> {
    let orders = match &args.what {
        What::Export { evidence } => return super::export::run(&args.socket, evidence.as_deref()),
        What::Add {
            src,
            dst,
            dest_qp,
            sender_qp,
        } => vec![NpccOrder::AddPair {
            src: *src,
            dst: *dst,
            dest_qp: *dest_qp,
            sender_qp: *sender_qp,
        }],
        What::Del { src, dst, dest_qp } => vec![NpccOrder::DeletePair {
            src: *src,
            dst: *dst,
            dest_qp: *dest_qp,
        }],
        What::Import {
            file,
            local,
            remote,
        } => {
            let mut text = String::new();
            if file.as_os_str() == "-" {
                let read = std::io::stdin().read_to_string(&mut text);
                read.context("cannot read standard input")?;
            } else {
                text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
            }
            import(&text, local.zip(*remote)).map_err(Failure::Config)?
        }
    };
    for order in orders {
        match client::ask(&args.socket, &Request::Npcc(order.clone()))? {
            Reply::Done => {}
            Reply::Error(message) => {
                return Err(anyhow!("the switch refused {order:?}: {message}").into());
            }
            _ => return Err(anyhow!("the switch answered something else").into()),
        }
    }
    Ok(())
}

/// The pairs a file holds.
fn import(text: &str, hosts: Option<(IpAddr, IpAddr)>) -> Result<Vec<NpccOrder>, String> {
    if text.trim_start().starts_with('[') {
        let Some((local, remote)) = hosts else {
            return Err(
                "error: this is `rdma` output, which has no addresses: add --local and --remote"
                    .to_owned(),
            );
        };
        let resources: Vec<Resource> = serde_json::from_str(text)
            .map_err(|error| format!("error: not what `rdma -j res show qp` prints: {error}"))?;
        let connected = resources
            .into_iter()
            .filter(|one| matches!(one.kind.as_str(), "RC" | "UC"));
        let pairs = connected.filter_map(|one| {
            let dest_qp = one.rqpn.filter(|qpn| *qpn > 1)?;
            Some(NpccOrder::AddPair {
                src: local,
                dst: remote,
                dest_qp,
                sender_qp: one.lqpn,
            })
        });
        return Ok(pairs.collect());
    }
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let pairs = lines.map(|(line, number)| {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| format!("error: line {number} is no pair: {error}"))?;
        Ok(NpccOrder::AddPair {
            src: line.src,
            dst: line.dst,
            dest_qp: line.dest_qp,
            sender_qp: line.sender_qp,
        })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 3));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2));

    fn pair(dest_qp: u32, sender_qp: u32) -> NpccOrder {
        NpccOrder::AddPair {
            src: A,
            dst: B,
            dest_qp,
            sender_qp,
        }
    }

    #[test]
    fn lines_of_ours_are_read_and_bad_ones_named() {
        let text = r#"{"src":"10.0.1.3","dst":"10.0.1.2","dest_qp":17,"sender_qp":24}

{"src":"10.0.1.3","dst":"10.0.1.2","dest_qp":18,"sender_qp":25}
"#;
        assert_eq!(import(text, None), Ok(vec![pair(17, 24), pair(18, 25)]));
        let wrong = import("{\"src\":\"10.0.1.3\"}", None).unwrap_err();
        assert!(wrong.contains("line 1"), "{wrong}");
    }

    #[test]
    fn what_rdma_prints_is_read_with_the_hosts_beside() {
        let text = r#"[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"[ib_core]"},
{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":24,"rqpn":17,"type":"RC","state":"RTS","rq-psn":0,"sq-psn":0,"pid":7,"comm":"ib_write_bw"}]"#;
        assert_eq!(import(text, Some((A, B))), Ok(vec![pair(17, 24)]));
        assert!(import(text, None).unwrap_err().contains("--local"));
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((number("17"), number("0x11")), (Ok(17), Ok(17)));
        assert!(number("eleven").is_err());
    }
}
