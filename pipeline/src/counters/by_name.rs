//! An array with one element for every variant of a named enumeration.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::path::Path;
use super::show::{Show, Visit};
use crate::named::Named;

/// One `T` for every variant of `E`, at the variant's index. In JSON it is a map by variant name, without default (zero)
/// elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    from = "BTreeMap<String, T>",
    into = "BTreeMap<String, T>",
    bound(
        serialize = "E: Named, T: Clone + Default + PartialEq + Serialize",
        deserialize = "E: Named, T: Default + Deserialize<'de>"
    )
)]
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub struct ByName<E, T, const N: usize>(
    #[deref]
    #[deref_mut]
    [T; N],
    PhantomData<E>,
);

impl<E, T: Default, const N: usize> Default for ByName<E, T, N> {
    fn default() -> ByName<E, T, N> {
        ByName(std::array::from_fn(|_| T::default()), PhantomData)
    }
}

impl<E: Named, T, const N: usize> ByName<E, T, N> {
    /// Iterates over the elements with their variants' names.
    pub fn each_named(&self) -> impl Iterator<Item = (&'static str, &T)> {
        E::NAMES.iter().copied().zip(&self.0)
    }

    /// Returns the element of the variant called `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&T> {
        self.each_named()
            .find_map(|(own, one)| (own == name).then_some(one))
    }
}

impl<E: Named, T: Default, const N: usize> From<BTreeMap<String, T>> for ByName<E, T, N> {
    /// Ignores unknown names: another version may have names that this one has not.
    fn from(mut map: BTreeMap<String, T>) -> ByName<E, T, N> {
        let mut all = ByName::default();
        for (name, one) in E::NAMES.iter().zip(&mut all.0) {
            *one = map.remove(*name).unwrap_or_default();
        }
        all
    }
}

impl<E: Named, T: Default + PartialEq, const N: usize> From<ByName<E, T, N>>
    for BTreeMap<String, T>
{
    fn from(all: ByName<E, T, N>) -> BTreeMap<String, T> {
        let all = E::NAMES.iter().zip(all.0);
        let some = all.filter(|(_, one)| *one != T::default());
        some.map(|(name, one)| ((*name).to_owned(), one)).collect()
    }
}

impl<E: Named, C: Cell, const N: usize> Cell for ByName<E, C, N> {
    type Count = ByName<E, C::Count, N>;

    fn add_to(&self, sum: &mut Self::Count) {
        self.0.add_to(&mut sum.0);
    }

    fn since(now: &mut Self::Count, then: &Self::Count) {
        <[C; N]>::since(&mut now.0, &then.0);
    }

    /// Builds paths from the names, not the indices: another version may have other variants between them.
    fn each(count: &mut Self::Count, path: Path, show: &mut dyn FnMut(Path, &mut u64)) {
        for (name, count) in E::NAMES.iter().zip(&mut count.0) {
            C::each(count, path.then(name), show);
        }
    }

    fn show(count: &Self::Count, how: &Show, to: &mut dyn Visit) {
        let (label, below) = how.below();
        for (name, count) in count.each_named() {
            let label = label.map(|(label, _)| (label, name));
            to.within(label, &mut |to| C::show(count, &below, to));
        }
    }
}

#[cfg(feature = "config")]
impl<E: Named, T: schemars::JsonSchema, const N: usize> schemars::JsonSchema for ByName<E, T, N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        BTreeMap::<String, T>::schema_name()
    }

    fn json_schema(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one = schemas.subschema_for::<T>();
        schemars::json_schema!({
            "type": "object",
            "propertyNames": { "enum": E::NAMES },
            "additionalProperties": one,
        })
    }
}
