//! Encoding of rtnetlink: messages are parsed into events, and requests are built.
//!
//! Only the attributes that decide forwarding are read, each by itself: an unknown attribute, or one of the wrong length,
//! is skipped and does not invalidate its message. A message without an indispensable attribute is malformed.
//! Requests are built by `netlink-packet-route`, except next-hop objects, which it does not know; reading a million routes by it would take a `Vec` each.

pub mod address;
pub mod attribute;
pub mod ethtool;
pub mod event;
pub mod link;
pub mod message;
pub mod neighbor;
pub mod nexthop;
pub mod not_followed;
pub mod request;
pub mod route;
pub mod rule;
pub mod unread;
