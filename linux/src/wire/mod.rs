//! Messages of rtnetlink, read into events and written as requests.
//!
//! Only the attributes that decide forwarding are read, each by itself: one that is alien, or not of the length it should
//! have, is passed over and does not cost the message it stands in. A message without what it cannot do without is none.
//! Next-hop objects are read here too, which no crate knows (`netlink-packet-route` 0.34 refuses them).

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
