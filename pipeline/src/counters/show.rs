//! How a count is shown: declared with its field, and all that a renderer (JSON apart, which serde writes) needs to know of it.

/// A metric: a name, and a sentence that says what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the suffix that the text adds for a counter.
    pub name: &'static str,
    /// What it counts; empty where another field declares the same metric with another value of its label.
    pub help: &'static str,
}

/// A label whose values are the names of the elements below it; digits where it has none.
pub type Label = (&'static str, &'static [&'static str]);

/// What a field of [`counters!`](crate::counters!) declares about its count.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Its metric; of [`super::Traffic`] that of the frames, and that of the bytes.
    pub metrics: [Option<Metric>; 2],
    /// The count is in ns, and its metric in seconds.
    pub seconds: bool,
    /// The label that tells this field from others with the same metric.
    pub tag: Option<(&'static str, &'static str)>,
    /// Labels of the elements, the outermost first, where there are several.
    pub labels: &'static [Label],
    /// The heading of its column in the table of its owner.
    pub column: Option<&'static str>,
    about: &'static str,
    kept: Option<&'static str>,
    owner: Option<usize>,
}

impl Show {
    /// A count that is no metric: its reader computes another from it, or it is for the program alone.
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

    /// Counts of another declaration, whose fields say how they are shown.
    #[must_use]
    pub const fn nested() -> Show {
        Show::no_metric()
    }

    /// Shown as the owner of these counts declares: the first of its metrics (frames), or the second (bytes).
    #[must_use]
    pub const fn of_owner(which: usize) -> Show {
        let mut how = Show::no_metric();
        how.owner = Some(which);
        how
    }

    /// The metric of this name; its help is what the field's documentation says.
    #[must_use]
    pub const fn metric(name: &'static str) -> Show {
        let mut how = Show::no_metric();
        how.metrics = [Some(Metric { name, help: "" }), None];
        how
    }

    /// With another help than the field's documentation.
    #[must_use]
    pub const fn help(mut self, about: &'static str) -> Show {
        self.about = about;
        self
    }

    /// The metric of the bytes beside that of the frames.
    #[must_use]
    pub const fn bytes(mut self, name: &'static str, help: &'static str) -> Show {
        self.metrics = [self.metrics[0], Some(Metric { name, help })];
        self
    }

    /// A count in ns whose metric is in seconds.
    #[must_use]
    pub const fn seconds(mut self) -> Show {
        self.seconds = true;
        self
    }

    /// One of several fields with the same metric: the label that tells it apart. The first of them has the help.
    #[must_use]
    pub const fn tag(mut self, label: &'static str, value: &'static str) -> Show {
        self.tag = Some((label, value));
        self
    }

    /// Several counts: the label of each level of elements.
    #[must_use]
    pub const fn by(mut self, labels: &'static [Label]) -> Show {
        self.labels = labels;
        self
    }

    /// A column of its owner's table.
    #[must_use]
    pub const fn column(mut self, heading: &'static str) -> Show {
        self.column = Some(heading);
        self
    }

    /// The name by which the count is kept over a restart, where the field has another; of a nested declaration, "" where its counts are
    /// kept as if they were its owner's.
    #[must_use]
    pub const fn kept(mut self, name: &'static str) -> Show {
        self.kept = Some(name);
        self
    }

    /// With the documentation of the field.
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

    /// Where the count is kept over a restart.
    #[must_use]
    pub fn path(&self, path: super::Path, field: &str) -> super::Path {
        match self.kept.unwrap_or(field) {
            "" => path,
            name => path.then(name),
        }
    }

    /// How a field of a nested declaration is shown, where its owner is shown like this.
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

    /// Goes into a nested declaration, unless its counts are its owner's.
    pub fn enter(&self, to: &mut dyn Visit, inside: &mut dyn FnMut(&mut dyn Visit)) {
        match self.kept {
            Some("") => inside(to),
            _ => to.within(None, inside),
        }
    }

    /// The label of the elements of the outermost level, and how what is below is shown.
    pub(super) fn below(&self) -> (Option<Label>, Show) {
        let (label, labels) = match self.labels {
            [] => (None, self.labels),
            [label, below @ ..] => (Some(*label), below),
        };
        (label, Show { labels, ..*self })
    }
}

/// The value of a label: the element's name or its digit.
pub(super) fn value_of(label: Label, element: usize) -> &'static str {
    const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let (_, names) = label;
    let names = if names.is_empty() { &DIGITS } else { names };
    names.get(element).copied().unwrap_or("?")
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Looks at counts, one after the other, each with its declaration.
pub trait Visit {
    /// A count; its metric is the first of the declaration.
    fn count(&mut self, how: &Show, kind: Kind, value: u64);

    /// Counts of another declaration, or of one of several elements: under this label.
    fn within(
        &mut self,
        label: Option<(&'static str, &'static str)>,
        inside: &mut dyn FnMut(&mut dyn Visit),
    );
}

/// The columns that a declaration has, with the counts below them.
#[derive(Debug, Default)]
pub struct Columns(pub Vec<(&'static str, u64)>);

impl Visit for Columns {
    fn count(&mut self, how: &Show, _: Kind, value: u64) {
        self.0.extend(how.column.map(|heading| (heading, value)));
    }

    /// They are in a table of their own.
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
        /// Two sides.
        pub enum Side {
            /// One.
            Left = "left",
            /// The other.
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
            /// By side.
            sides: ByName<Side, Counter, 2> => metric("sides").by(&[("side", &[])]),
            /// Bits.
            mask: Mask => metric("mask").by(&[("bit", &[])]),
            /// Nobody sees it.
            hidden: Counter => no_metric(),
            /// Each of two.
            inner: [InnerCells; 2] => nested().by(&[("place", &["near", "far"])]),
            /// Its owner's.
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
        shown("sides{side=left} 0 Counter By side.");
        shown("sides{side=right} 4 Counter By side.");
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
