//! Presentation of a count: declared with its field, and all that a renderer needs to know of it (except JSON, which serde
//! writes).

/// Name and help text of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Metric name, without the suffix that the text format adds for a counter.
    pub name: &'static str,
    /// Help text; empty if another field declares the same metric with another value of its label.
    pub help: &'static str,
}

/// Label name, and the names of the elements below it as its values; digits if there are no names.
pub type Label = (&'static str, &'static [&'static str]);

/// Presentation of one count, as its field in [`counters!`](crate::counters!) declares it.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Metrics of the count; for [`super::Traffic`], those of the frames and of the bytes.
    pub metrics: [Option<Metric>; 2],
    /// True if the count is in ns and its metric in seconds.
    pub seconds: bool,
    /// Label and value that distinguish this field from others with the same metric.
    pub tag: Option<(&'static str, &'static str)>,
    /// Labels of the elements, outermost first, if the field is an array.
    pub labels: &'static [Label],
    /// Heading of its column in the table of its owner.
    pub column: Option<&'static str>,
    about: &'static str,
    kept: Option<&'static str>,
    owner: Option<usize>,
}

impl Show {
    /// Declares a count without a metric: another value is computed from it, or it is internal to the program.
    #[must_use]
    pub const fn no_metric() -> Show {
        Show {
            metrics: [None, None],
            seconds: false,
            tag: None,
            labels: &[],
            column: None,
            about: "",
            kept: None,
            owner: None,
        }
    }

    /// Declares nested counts, whose own fields say how they are shown.
    #[must_use]
    pub const fn nested() -> Show {
        Show::no_metric()
    }

    /// Declares a count shown as the owner of its structure declares: with the owner's first metric (0, frames) or second (1,
    /// bytes).
    #[must_use]
    pub const fn of_owner(which: usize) -> Show {
        let mut how = Show::no_metric();
        how.owner = Some(which);
        how
    }

    /// Declares the metric `name`; its help text is the field's documentation.
    #[must_use]
    pub const fn metric(name: &'static str) -> Show {
        let mut how = Show::no_metric();
        how.metrics = [Some(Metric { name, help: "" }), None];
        how
    }

    /// Replaces the help text, by default the field's documentation.
    #[must_use]
    pub const fn help(mut self, about: &'static str) -> Show {
        self.about = about;
        self
    }

    /// Adds the metric of the bytes to that of the frames.
    #[must_use]
    pub const fn bytes(mut self, name: &'static str, help: &'static str) -> Show {
        self.metrics = [self.metrics[0], Some(Metric { name, help })];
        self
    }

    /// Marks a count in ns whose metric is in seconds.
    #[must_use]
    pub const fn seconds(mut self) -> Show {
        self.seconds = true;
        self
    }

    /// Adds the label that distinguishes several fields with the same metric. The first of these fields has the help text.
    #[must_use]
    pub const fn tag(mut self, label: &'static str, value: &'static str) -> Show {
        self.tag = Some((label, value));
        self
    }

    /// Adds the label of each level of elements of an array.
    #[must_use]
    pub const fn by(mut self, labels: &'static [Label]) -> Show {
        self.labels = labels;
        self
    }

    /// Adds a column to its owner's table.
    #[must_use]
    pub const fn column(mut self, heading: &'static str) -> Show {
        self.column = Some(heading);
        self
    }

    /// Sets the name under which the count is kept over a restart, if that is not the field's name. For a nested declaration,
    /// "" keeps its counts as if they were its owner's.
    #[must_use]
    pub const fn kept(mut self, name: &'static str) -> Show {
        self.kept = Some(name);
        self
    }

    /// Takes the field's documentation as help text, unless another was set.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_field(mut self, documentation: &'static str) -> Show {
        if let [Some(metric), _] = &mut self.metrics {
            metric.help = if self.about.is_empty() && self.tag.is_none() {
                documentation.trim_ascii()
            } else {
                self.about
            };
        }
        self
    }

    /// Returns the path under which the count is kept over a restart.
    #[must_use]
    pub fn path(&self, path: super::Path, field: &str) -> super::Path {
        match self.kept.unwrap_or(field) {
            "" => path,
            name => path.then(name),
        }
    }

    /// Returns the presentation of `field` in a nested declaration whose owner is shown like `self`.
    #[must_use]
    pub fn over(&self, field: &Show) -> Show {
        let Some(which) = field.owner else {
            return *field;
        };
        let metric = self.metrics.get(which).copied().flatten();
        Show {
            metrics: [metric, None],
            ..*self
        }
    }

    /// Enters a nested declaration, without a level of its own if its counts are kept as its owner's.
    pub fn enter(&self, to: &mut dyn Visit, inside: &mut dyn FnMut(&mut dyn Visit)) {
        match self.kept {
            Some("") => inside(to),
            _ => to.within(None, inside),
        }
    }

    /// Returns the label of the outermost level of elements, and the presentation of the levels below.
    pub(super) fn below(&self) -> (Option<Label>, Show) {
        let (label, labels) = match self.labels {
            [] => (None, self.labels),
            [label, below @ ..] => (Some(*label), below),
        };
        (label, Show { labels, ..*self })
    }
}

/// Returns the value of a label: the element's name, or its digit.
pub(super) fn value_of(label: Label, element: usize) -> &'static str {
    const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let (_, names) = label;
    let names = if names.is_empty() { &DIGITS } else { names };
    names.get(element).copied().unwrap_or("?")
}

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Value that only grows.
    Counter,
    /// Value that goes up and down.
    Gauge,
}

/// Visitor of counts, one after the other, each with its declaration.
pub trait Visit {
    /// Visits a count; its metric is the first of the declaration.
    fn count(&mut self, how: &Show, kind: Kind, value: u64);

    /// Visits the counts of a nested declaration, or of one of several elements under `label`.
    fn within(
        &mut self,
        label: Option<(&'static str, &'static str)>,
        inside: &mut dyn FnMut(&mut dyn Visit),
    );
}

/// Visitor that collects the columns of a declaration, with their counts.
#[derive(Debug, Default)]
pub struct Columns(pub Vec<(&'static str, u64)>);

impl Visit for Columns {
    fn count(&mut self, how: &Show, _: Kind, value: u64) {
        self.0.extend(how.column.map(|heading| (heading, value)));
    }

    /// Skips nested counts: they are in a table of their own.
    fn within(
        &mut self,
        _: Option<(&'static str, &'static str)>,
        _: &mut dyn FnMut(&mut dyn Visit),
    ) {
    }
}

#[cfg(test)]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the macro declares more than is tested here"
)]
mod tests {
    use super::super::{ByName, Counter, Mask, Path, Traffic};
    use super::{Kind, Show, Visit};

    crate::named! {
        /// One of two sides.
        pub enum Side {
            /// Left side.
            Left = "left",
            /// Right side.
            Right = "right",
        }
    }

    counters! {
        /// A nested declaration.
        pub struct InnerCells => InnerCounts {
            /// Frames lost inside.
            lost: Counter => metric("lost").column("LOST"),
        }
    }

    counters! {
        /// Every way to declare a count.
        pub struct Cells => Counts {
            /// Frames that came
            /// in.
            rx: Traffic => metric("frames").bytes("bytes", "Bytes."),
            /// Only the left ones.
            left: Counter => metric("kinds").tag("kind", "left").help("Frames by kind.").column("LEFT").kept("first"),
            /// Counts by side, as the visitor shows them.
            sides: ByName<Side, Counter, 2> => metric("sides").by(&[("side", &[])]),
            /// Bits.
            mask: Mask => metric("mask").by(&[("bit", &[])]),
            /// Hidden count.
            hidden: Counter => no_metric(),
            /// Counts of each of two elements.
            inner: [InnerCells; 2] => nested().by(&[("place", &["near", "far"])]),
            /// Counts kept as the owner's.
            own: InnerCells => nested().kept(""),
        }
    }

    #[derive(Default)]
    struct Seen(Vec<String>, Vec<String>);

    impl Visit for Seen {
        fn count(&mut self, how: &Show, kind: Kind, value: u64) {
            if let [Some(metric), _] = how.metrics {
                let labels = self
                    .1
                    .iter()
                    .cloned()
                    .chain(how.tag.map(|(name, value)| format!("{name}={value}")));
                let labels = labels.collect::<Vec<_>>().join(",");
                self.0.push(format!(
                    "{}{{{labels}}} {value} {kind:?} {}",
                    metric.name, metric.help
                ));
            }
        }

        fn within(
            &mut self,
            label: Option<(&'static str, &'static str)>,
            inside: &mut dyn FnMut(&mut dyn Visit),
        ) {
            let outside = self.1.len();
            self.1
                .extend(label.map(|(name, value)| format!("{name}={value}")));
            inside(self);
            self.1.truncate(outside);
        }
    }

    #[test]
    fn each_count_is_visited_with_its_metric_and_its_labels() {
        let mut counts = Counts {
            left: 3,
            mask: 0b10,
            hidden: 9,
            ..Counts::default()
        };
        counts.rx.bytes = 64;
        counts.sides[1] = 4;
        counts.inner[1].lost = 5;
        counts.own.lost = 6;
        let mut seen = Seen::default();
        counts.show(&mut seen);
        let shown = |line: &str| {
            assert!(
                seen.0.iter().any(|one| one == line),
                "{line}: {:#?}",
                seen.0
            )
        };
        shown("frames{} 0 Counter Frames that came in.");
        shown("bytes{} 64 Counter Bytes.");
        shown("kinds{kind=left} 3 Counter Frames by kind.");
        shown("sides{side=left} 0 Counter Counts by side, as the visitor shows them.");
        shown("sides{side=right} 4 Counter Counts by side, as the visitor shows them.");
        shown("mask{bit=0} 0 Gauge Bits.");
        shown("mask{bit=1} 1 Gauge Bits.");
        shown("lost{place=far} 5 Counter Frames lost inside.");
        shown("lost{} 6 Counter Frames lost inside.");
        assert_eq!(seen.0.len(), 16);
        assert_eq!(counts.columns(), [("LEFT", 3), ("LOST", 6)]);
    }

    #[test]
    fn a_count_is_kept_by_its_name_or_the_one_it_declares() {
        let mut paths = vec![];
        Counts::default().each(Path::ROOT, &mut |path, _| paths.push(path));
        let root = Path::ROOT;
        assert_eq!(
            paths,
            [
                root.then("rx").then("packets"),
                root.then("rx").then("bytes"),
                root.then("first"),
                root.then("sides").then("left"),
                root.then("sides").then("right"),
                root.then("hidden"),
                root.then("inner").at(0).then("lost"),
                root.then("inner").at(1).then("lost"),
                root.then("lost"),
            ]
        );
    }
}
