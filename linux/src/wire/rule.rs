//! Rules of policy routing: `RTM_NEWRULE`, `RTM_DELRULE`. The switch follows the usual ones, which look up `local`, `main` and `default`.

use std::fmt::Write as _;
use std::net::IpAddr;

use netlink_packet_core::Parseable as _;
use netlink_packet_route::AddressFamily as Family;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use npcc_pipeline::route::prefix::Prefix;

use super::attribute::{INET, INET6, unspecified};
use super::not_followed::{NotFollowed, Reason};
use super::route::{DEFAULT, LOCAL, MAIN};
use super::unread::Unread;

/// `RTM_NEWRULE`.
pub const NEW: u16 = 32;
/// `RTM_DELRULE`.
pub const GONE: u16 = 33;

/// Priorities and tables of the usual rules.
const USUAL: [(u32, u32); 3] = [(0, LOCAL), (32_766, MAIN), (32_767, DEFAULT)];

/// Parses a rule message.
///
/// # Errors
/// The rule is a usual one, or of another family than IPv4 and IPv6.
pub fn read(body: &[u8]) -> Result<NotFollowed, Unread> {
    let rule = RuleMessage::parse(body).map_err(|_| Unread::Malformed)?;
    let family = match rule.header.family {
        Family::Inet => INET,
        Family::Inet6 => INET6,
        _ => return Err(Unread::NotOurs),
    };
    let (mut priority, mut table) = (0, u32::from(rule.header.table));
    let (mut source, mut destination) = (None, None);
    let mut selectors = String::new();
    // A selector of a kind that is not named here makes the rule an unusual one too.
    for attribute in &rule.attributes {
        match attribute {
            RuleAttribute::Priority(number) => priority = *number,
            RuleAttribute::Table(number) => table = *number,
            RuleAttribute::Source(ip) => source = Some(*ip),
            RuleAttribute::Destination(ip) => destination = Some(*ip),
            RuleAttribute::Protocol(_)
            | RuleAttribute::FwMask(_)
            | RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            RuleAttribute::FwMark(mark) => put(&mut selectors, format_args!("fwmark {mark:#x}")),
            RuleAttribute::Iifname(name) => {
                put(&mut selectors, format_args!("iif {}", name.escape_debug()))
            }
            RuleAttribute::Oifname(name) => {
                put(&mut selectors, format_args!("oif {}", name.escape_debug()))
            }
            RuleAttribute::IpProtocol(number) => {
                put(&mut selectors, format_args!("ipproto {number:?}"))
            }
            RuleAttribute::L3MDev(_) => put(&mut selectors, format_args!("l3mdev")),
            RuleAttribute::Other(_) => {}
            _ => put(&mut selectors, format_args!("further selectors")),
        }
    }
    if rule.header.tos != 0 {
        put(&mut selectors, format_args!("tos {:#04x}", rule.header.tos));
    }
    let net = |address: Option<IpAddr>, len: u8| match address {
        Some(address) => Prefix::new(address, len),
        None => unspecified(family).and_then(|any| Prefix::new(any, 0)),
    };
    let from = net(source, rule.header.src_len).ok_or(Unread::Malformed)?;
    let to = net(destination, rule.header.dst_len).ok_or(Unread::Malformed)?;
    let is_plain = selectors.is_empty() && source.is_none() && destination.is_none();
    let looks_up = rule.header.action == RuleAction::ToTable;
    if is_plain && looks_up && USUAL.contains(&(priority, table)) {
        return Err(Unread::NotOurs);
    }
    let mut detail = format!("{priority}:");
    if source.is_some() {
        put(&mut detail, format_args!("from {from}"));
    }
    if !selectors.is_empty() {
        put(&mut detail, format_args!("{selectors}"));
    }
    match rule.header.action {
        RuleAction::ToTable => match table {
            LOCAL => put(&mut detail, format_args!("lookup local")),
            MAIN => put(&mut detail, format_args!("lookup main")),
            DEFAULT => put(&mut detail, format_args!("lookup default")),
            other => put(&mut detail, format_args!("lookup {other}")),
        },
        other => put(&mut detail, format_args!("{other:?}")),
    }
    Ok(NotFollowed {
        prefix: to,
        table: None,
        metric: priority,
        reason: Reason::Rule,
        detail,
    })
}

/// Adds words behind others.
fn put(words: &mut String, more: std::fmt::Arguments<'_>) {
    let between = if words.is_empty() { "" } else { " " };
    let _ = write!(words, "{between}{more}");
}
