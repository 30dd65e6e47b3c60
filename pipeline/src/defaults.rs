//! Macro for structs whose fields have their defaults beside them, as in RFC 3681.

/// Declares a struct and its [`Default`].
///
/// ```
/// npcc_pipeline::defaults! {
///     /// How to drive.
///     #[derive(Debug, PartialEq)]
///     pub struct Drive {
///         /// In km/h.
///         pub speed: u32 = 50,
///         /// Who steers.
///         pub driver: Option<String> = None,
///     }
/// }
/// assert_eq!(Drive::default(), Drive { speed: 50, driver: None });
/// ```
#[macro_export]
macro_rules! defaults {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {
            $( $(#[$of_field:meta])* $field_vis:vis $field:ident: $Type:ty = $default:expr, )+
        }
    ) => {
        $(#[$meta])*
        $vis struct $Name {
            $( $(#[$of_field])* $field_vis $field: $Type, )+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }
    };
}
