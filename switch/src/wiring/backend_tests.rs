use super::*;

/// Earlier defect: the most common RoCE card ended up without pause, and no message said so.
#[test]
fn a_card_without_pause_does_not_start_lossless() {
    let ability = |driver: &str, self_test| Ability {
        driver: driver.to_owned(),
        answer: Answer::NotRequested,
        self_test,
    };
    let admitted = |backend, port, driver: &str, self_test, vdev| {
        let request = PfcRequest { backend, port };
        let choice = decide(request, &ability(driver, self_test)).unwrap();
        admits(request, &choice, 1 << 3, vdev)
    };
    let (auto, none) = (PfcBackend::Auto, PfcBackend::None);
    for driver in ["mlx5_pci", "net_i40e"] {
        let refused = admitted(auto, PortPfc::Auto, driver, SelfTest::NotRun, false);
        assert!(refused.is_err(), "{driver}");
        let off = admitted(auto, PortPfc::Off, driver, SelfTest::NotRun, false);
        assert_eq!(off, Ok(()));
        let none = admitted(none, PortPfc::Auto, driver, SelfTest::NotRun, false);
        assert_eq!(none, Ok(()));
    }
    let refused = admitted(auto, PortPfc::Auto, "net_ixgbe", SelfTest::Refused, false);
    assert!(refused.is_err_and(|why| why.contains("refused a pause frame")));
    let down = admitted(auto, PortPfc::Auto, "net_ixgbe", SelfTest::LinkDown, false);
    assert_eq!(down, Ok(()), "a link that is down proves nothing");
    let null = admitted(auto, PortPfc::Auto, "net_null", SelfTest::NotRun, true);
    assert_eq!(null, Ok(()));
}

fn decided(
    (backend, port): (PfcBackend, PortPfc),
    driver: &str,
    answer: Answer,
    self_test: SelfTest,
) -> Result<(Backend, String), String> {
    let ability = Ability {
        driver: driver.to_owned(),
        answer,
        self_test,
    };
    let choice = decide(PfcRequest { backend, port }, &ability)?;
    Ok((choice.backend, choice.why))
}

/// Test row: settings and facts, expected back end, and a word of the reason.
type Case = (
    (PfcBackend, PortPfc),
    &'static str,
    Answer,
    SelfTest,
    Backend,
    &'static str,
);

fn all_hold(cases: impl IntoIterator<Item = Case>) {
    for (request, driver, answer, test, backend, word) in cases {
        let row = format!("{request:?} {driver} {answer:?} {test:?}");
        let (got, why) = decided(request, driver, answer, test).unwrap();
        assert_eq!(got, backend, "{row}: {why}");
        assert!(why.contains(word), "{row}: {why}");
    }
}

#[test]
fn auto_goes_by_the_driver_its_answer_and_the_test() {
    use Answer::{NotRequested, Obeys};
    use Backend as B;
    use SelfTest::{LinkDown, NotRun, Refused, Sent, Uncounted};
    let lacks = || Answer::Refused("Operation not supported".to_owned());
    let auto = (PfcBackend::Auto, PortPfc::Auto);
    all_hold([
        (auto, "net_pcap", NotRequested, NotRun, B::None, "no peer"),
        (auto, "net_null", NotRequested, NotRun, B::None, "no peer"),
        (auto, "net_i40e", NotRequested, NotRun, B::None, "i40e"),
        (auto, "mlx5_pci", NotRequested, NotRun, B::None, "mlnx_qos"),
        (
            auto,
            "net_af_packet",
            NotRequested,
            Sent,
            B::Software,
            "virtual",
        ),
        (
            auto,
            "net_af_packet",
            NotRequested,
            LinkDown,
            B::Software,
            "virtual",
        ),
        (
            auto,
            "net_af_packet",
            NotRequested,
            Refused,
            B::None,
            "refused",
        ),
        (auto, "net_ixgbe", Obeys, Sent, B::Hardware, "by itself"),
        (auto, "net_cnxk", Obeys, Uncounted, B::Hardware, "by itself"),
        (auto, "net_ice", lacks(), Sent, B::Software, "not supported"),
        (auto, "net_ice", lacks(), Uncounted, B::Software, "RX PFC"),
        (auto, "net_ice", lacks(), Refused, B::None, "refused"),
    ]);
}

#[test]
fn what_the_operator_says_goes() {
    use Answer::{NotRequested, Obeys};
    use Backend as B;
    use PfcBackend::{Auto, Hardware, None, Software};
    use SelfTest::{NotRun, Refused, Sent};
    all_hold([
        (
            (Auto, PortPfc::Send),
            "net_pcap",
            NotRequested,
            NotRun,
            B::Software,
            "told to",
        ),
        (
            (Auto, PortPfc::Honour),
            "net_i40e",
            NotRequested,
            NotRun,
            B::Software,
            "told to",
        ),
        (
            (Auto, PortPfc::Send),
            "net_ixgbe",
            Obeys,
            NotRun,
            B::Hardware,
            "by itself",
        ),
        (
            (Auto, PortPfc::Off),
            "net_ixgbe",
            NotRequested,
            NotRun,
            B::None,
            "pfc: off",
        ),
        (
            (Software, PortPfc::Auto),
            "net_i40e",
            NotRequested,
            Refused,
            B::Software,
            "software",
        ),
        (
            (None, PortPfc::Send),
            "net_ixgbe",
            NotRequested,
            NotRun,
            B::None,
            "none",
        ),
        (
            (Hardware, PortPfc::Auto),
            "net_ixgbe",
            Obeys,
            Sent,
            B::Hardware,
            "hardware",
        ),
        (
            (Hardware, PortPfc::Off),
            "net_null",
            NotRequested,
            NotRun,
            B::None,
            "pfc: off",
        ),
    ]);
}

#[test]
fn hardware_on_a_port_that_cannot_is_an_error_with_the_devices_words() {
    let refused = Answer::Refused("Operation not supported (errno 95)".to_owned());
    let request = (PfcBackend::Hardware, PortPfc::Send);
    let error = decided(request, "net_af_packet", refused, SelfTest::Sent).unwrap_err();
    assert!(error.contains("errno 95"), "{error}");
}

#[test]
fn only_a_mac_is_asked_unless_it_must() {
    let ask = |backend, port, driver| asks(PfcRequest { backend, port }, driver);
    assert!(ask(PfcBackend::Auto, PortPfc::Auto, "net_ixgbe"));
    assert!(!ask(PfcBackend::Auto, PortPfc::Auto, "net_af_packet"));
    assert!(!ask(PfcBackend::Auto, PortPfc::Auto, "net_i40e"));
    assert!(ask(PfcBackend::Hardware, PortPfc::Auto, "net_af_packet"));
    assert!(!ask(PfcBackend::Hardware, PortPfc::Off, "net_ixgbe"));
    assert!(!ask(PfcBackend::Software, PortPfc::Auto, "net_ixgbe"));
}
