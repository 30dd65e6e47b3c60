//! Tables by port and by priority whose index cannot be out of range, so that no read on the packet path needs a check.

use std::ops::{Index, IndexMut};

use crate::units::{MAX_PORTS, PRIORITIES, PortId, Priority};

/// One `T` for each priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerPriority<T>(pub [T; PRIORITIES]);

impl<T> Index<Priority> for PerPriority<T> {
    type Output = T;

    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the mask keeps it below 8")]
    fn index(&self, priority: Priority) -> &T {
        &self.0[priority.index() & (PRIORITIES - 1)]
    }
}

impl<T> IndexMut<Priority> for PerPriority<T> {
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the mask keeps it below 8")]
    fn index_mut(&mut self, priority: Priority) -> &mut T {
        &mut self.0[priority.index() & (PRIORITIES - 1)]
    }
}

impl<T> PerPriority<T> {
    /// Iterates over the priorities with their elements, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Priority, &T)> + ExactSizeIterator {
        Priority::all().zip(&self.0)
    }

    /// Iterates over the priorities with their elements, mutable, lowest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Priority, &mut T)> {
        Priority::all().zip(&mut self.0)
    }
}

/// One `T` for each port a switch can have; the elements of ports that are not configured exist and are never used.
#[derive(Debug)]
pub struct PerPort<T> {
    all: Box<[T; MAX_PORTS]>,
    configured: usize,
}

impl<T> PerPort<T> {
    /// Returns a table of the configured ports' elements, in their order, at most [`MAX_PORTS`]; `spare` makes the others.
    pub fn new(items: impl IntoIterator<Item = T>, spare: impl Fn() -> T) -> PerPort<T> {
        let mut all: Vec<T> = items.into_iter().take(MAX_PORTS).collect();
        let configured = all.len();
        all.resize_with(MAX_PORTS, spare);
        let all = all.into_boxed_slice().try_into();
        PerPort {
            all: all.unwrap_or_else(|_| unreachable!("it was resized")),
            configured,
        }
    }

    /// Returns the number of configured ports.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.configured
    }

    /// Returns true if no port is configured.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.configured == 0
    }

    /// Iterates over the configured ports with their elements.
    pub fn iter(&self) -> impl Iterator<Item = (PortId, &T)> {
        (0..).map(PortId).zip(self.all.iter()).take(self.configured)
    }

    /// Iterates over the configured ports with their elements, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PortId, &mut T)> {
        (0..)
            .map(PortId)
            .zip(self.all.iter_mut())
            .take(self.configured)
    }
}

impl<T> Index<PortId> for PerPort<T> {
    type Output = T;

    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the mask keeps it below MAX_PORTS")]
    fn index(&self, port: PortId) -> &T {
        &self.all[port.index() & (MAX_PORTS - 1)]
    }
}

impl<T> IndexMut<PortId> for PerPort<T> {
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "the mask keeps it below MAX_PORTS")]
    fn index_mut(&mut self, port: PortId) -> &mut T {
        &mut self.all[port.index() & (MAX_PORTS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_ports_are_walked_and_every_port_can_be_asked() {
        let mut ports = PerPort::new([1, 2, 3], || 0);
        ports[PortId(2)] += 4;
        let all: Vec<_> = ports.iter().map(|(port, item)| (port.0, *item)).collect();
        assert_eq!(all, [(0, 1), (1, 2), (2, 7)]);
        assert_eq!(
            (ports[PortId(31)], ports[PortId(255)], ports.len()),
            (0, 0, 3)
        );
    }
}
