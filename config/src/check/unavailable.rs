//! Settings that the format knows and this version does not support: refused, never silently ignored.

use super::Check;
use crate::model::CnpVia;
use crate::tree::Path;

fn refuse(check: &mut Check<'_>, path: &Path, what: &str, hint: &str) {
    check.error(path, format!("{what} is not available yet"), hint);
}

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    if file.npcc.cnp.via == CnpVia::IngressPort {
        let hint = "write via: route; it prefers the flow's ingress port among equal paths";
        let path = Path::root("npcc").key("cnp").key("via");
        refuse(check, &path, "via: ingress-port", hint);
    }
}
