//! Messages of rtnetlink, read into events and written as requests.
//!
//! Only the attributes that decide forwarding are read, each by itself: one that is alien, or not of the length it should
//! have, is passed over and does not cost the message it stands in. A message without what it cannot do without is none.
//! Requests are written by `netlink-packet-route`, but for next-hop objects, which it does not know; reading a million routes by it would take a `Vec` each.

pub mod address;
pub mod attribute;
pub mod ethtool;
pub mod event;
pub mod link;
pub mod message;
pub mod neighbor;
pub mod nexthop;
pub mod request;
pub mod route;
pub mod unread;
