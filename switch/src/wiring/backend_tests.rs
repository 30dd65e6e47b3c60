use npcc_config::cards::rows;

use super::*;

const AUTO: PfcRequest = PfcRequest {
    backend: PfcBackend::Auto,
    port: PortPfc::Auto,
};

fn lacks() -> Answer {
    Answer::Refused("Operation not supported".to_owned())
}

fn ability((driver, is_vf): (&str, bool), answer: Answer, self_test: SelfTest) -> Ability {
    Ability {
        card: Card::of_driver(driver, is_vf),
        answer,
        self_test,
    }
}

/// Decision on a lossless port.
enum Is {
    Started,
    Red,
    Refused(&'static str),
}

/// Drivers by DPDK's names, virtual functions among them, and the decision with `auto` where the pause frame of the start had this result.
const CARDS: [(&str, bool, SelfTest, Is); 30] = [
    ("net_ixgbe", false, SelfTest::Sent, Is::Started),
    ("net_ixgbe", false, SelfTest::LinkDown, Is::Started),
    (
        "net_ixgbe",
        false,
        SelfTest::Uncounted,
        Is::Refused("did not count it"),
    ),
    (
        "net_ixgbe",
        false,
        SelfTest::Refused,
        Is::Refused("refused a pause frame"),
    ),
    ("net_e1000_igb", false, SelfTest::Sent, Is::Started),
    ("net_e1000_igb", false, SelfTest::LinkDown, Is::Started),
    (
        "net_e1000_igb",
        false,
        SelfTest::Uncounted,
        Is::Refused("did not count it"),
    ),
    ("net_e1000_em", false, SelfTest::Sent, Is::Started),
    ("net_e1000_em", false, SelfTest::Uncounted, Is::Started),
    ("net_virtio", false, SelfTest::Sent, Is::Started),
    ("net_virtio", false, SelfTest::Uncounted, Is::Started),
    ("net_vmxnet3", false, SelfTest::Sent, Is::Started),
    ("net_ice", false, SelfTest::Sent, Is::Red),
    ("net_ice", false, SelfTest::Uncounted, Is::Red),
    ("net_ice", false, SelfTest::LinkDown, Is::Red),
    (
        "net_ice",
        false,
        SelfTest::Refused,
        Is::Refused("refused a pause frame"),
    ),
    ("net_hns3", false, SelfTest::Sent, Is::Red),
    ("net_qede", false, SelfTest::Sent, Is::Red),
    ("mlx5_pci", false, SelfTest::NotRun, Is::Refused("ConnectX")),
    (
        "mlx5_auxiliary",
        false,
        SelfTest::NotRun,
        Is::Refused("ConnectX"),
    ),
    ("net_mlx4", false, SelfTest::NotRun, Is::Refused("ConnectX")),
    ("net_i40e", false, SelfTest::NotRun, Is::Refused("i40e")),
    ("net_bnxt", false, SelfTest::NotRun, Is::Refused("firmware")),
    ("net_ena", false, SelfTest::NotRun, Is::Refused("cloud")),
    (
        "net_iavf",
        false,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
    (
        "net_ixgbe_vf",
        false,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
    (
        "net_e1000_igb_vf",
        false,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
    (
        "net_hns3_vf",
        false,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
    (
        "net_ixgbe",
        true,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
    (
        "net_virtio",
        true,
        SelfTest::NotRun,
        Is::Refused("virtual function"),
    ),
];

#[test]
fn a_lossless_port_starts_by_its_card() {
    for (driver, is_vf, self_test, expected) in CARDS {
        let row = format!("{driver} {is_vf} {self_test:?}");
        let ability = ability((driver, is_vf), lacks(), self_test);
        let choice = decide(AUTO, &ability).unwrap();
        let admitted = admits(AUTO, &choice, 1 << 3, false);
        match expected {
            Is::Started => assert_eq!((admitted, choice.suspected), (Ok(()), false), "{row}"),
            Is::Red => assert_eq!((admitted, choice.suspected), (Ok(()), true), "{row}"),
            Is::Refused(word) => {
                let why = admitted.unwrap_err();
                assert!(why.contains(word), "{row}: {why}");
                assert!(!why.contains("mlnx_qos"), "no card has shown that it helps");
            }
        }
        assert_eq!(admits(AUTO, &choice, 0, false), Ok(()), "{row}: lossy");
    }
    let null = decide(
        AUTO,
        &ability(("net_null", false), Answer::NotRequested, SelfTest::NotRun),
    );
    assert_eq!(admits(AUTO, &null.unwrap(), 1 << 3, true), Ok(()), "a file");
}

/// The start and the table agree, and each remedy that does not touch the card is accepted with each card.
#[test]
fn the_settings_that_a_refusal_names_are_accepted_with_every_card() {
    let sent = [
        SelfTest::NotRun,
        SelfTest::Sent,
        SelfTest::Uncounted,
        SelfTest::Refused,
    ];
    for (card, self_test) in rows().flat_map(|card| sent.map(|test| (card, test))) {
        let ability = Ability {
            card,
            answer: lacks(),
            self_test,
        };
        let decided = |port, lossless| {
            let request = PfcRequest { port, ..AUTO };
            admits(
                request,
                &decide(request, &ability).unwrap(),
                lossless,
                false,
            )
        };
        if let Some(why) = card.reject_reason(PfcBackend::Auto, PortPfc::Auto) {
            assert_eq!(decided(PortPfc::Auto, 1 << 3), Err(why.to_owned()));
        }
        assert_eq!(decided(PortPfc::Auto, 0), Ok(()), "roce-semi-lossless");
        for port in [PortPfc::Off, PortPfc::Send, PortPfc::Honour] {
            assert_eq!(decided(port, 1 << 3), Ok(()), "{port:?} {}", card.name);
        }
    }
}

#[test]
fn a_virtual_function_is_known_by_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let card = || super::card("net_ixgbe", folder.path()).name;
    assert!(card().contains("82599"));
    std::fs::create_dir(folder.path().join("physfn")).unwrap();
    assert!(card().contains("virtual function"));
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
    for ((backend, port), driver, answer, test, expected, word) in cases {
        let row = format!("{backend:?} {port:?} {driver} {answer:?} {test:?}");
        let request = PfcRequest { backend, port };
        let choice = decide(request, &ability((driver, false), answer, test)).unwrap();
        assert_eq!(choice.backend, expected, "{row}: {}", choice.why);
        assert!(choice.why.contains(word), "{row}: {}", choice.why);
    }
}

#[test]
fn auto_goes_by_the_driver_its_answer_and_the_test() {
    use Answer::{NotRequested, Obeys};
    use Backend as B;
    use SelfTest::{LinkDown, NotRun, Refused, Sent, Uncounted};
    let auto = (PfcBackend::Auto, PortPfc::Auto);
    all_hold([
        (auto, "net_pcap", NotRequested, NotRun, B::None, "no peer"),
        (auto, "net_null", NotRequested, NotRun, B::None, "no peer"),
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
            "net_tap",
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
        (
            auto,
            "net_cn10k",
            Obeys,
            Uncounted,
            B::Hardware,
            "by itself",
        ),
        (auto, "mlx5_pci", Obeys, NotRun, B::Hardware, "by itself"),
        (
            auto,
            "net_ixgbe",
            lacks(),
            Sent,
            B::Software,
            "both directions",
        ),
        (
            auto,
            "net_ice",
            lacks(),
            Sent,
            B::Software,
            "not supported; nothing shows",
        ),
        (auto, "net_ice", lacks(), Uncounted, B::Software, "RX PFC"),
    ]);
}

#[test]
fn what_the_operator_says_goes() {
    use Answer::{NotRequested, Obeys};
    use Backend as B;
    use PfcBackend::{Auto, Hardware, None, Software};
    use PortPfc::{Honour, Off, Send};
    use SelfTest::{NotRun, Refused, Sent};
    all_hold([
        (
            (Auto, Send),
            "net_pcap",
            NotRequested,
            NotRun,
            B::Software,
            "requires it",
        ),
        (
            (Auto, Honour),
            "net_i40e",
            lacks(),
            NotRun,
            B::Software,
            "requires it",
        ),
        (
            (Auto, Send),
            "mlx5_pci",
            lacks(),
            NotRun,
            B::Software,
            "requires it",
        ),
        (
            (Auto, Send),
            "net_ixgbe",
            Obeys,
            NotRun,
            B::Hardware,
            "by itself",
        ),
        (
            (Auto, Off),
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
            (None, Send),
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
            (Hardware, Off),
            "net_null",
            NotRequested,
            NotRun,
            B::None,
            "pfc: off",
        ),
    ]);
}

/// `pfc: honour` needs received frames alone, which i40e passes on.
#[test]
fn what_the_operator_turns_on_is_suspected_where_nothing_shows_that_it_works() {
    let suspected = |driver, port| {
        let request = PfcRequest { port, ..AUTO };
        let choice = decide(
            request,
            &ability((driver, false), lacks(), SelfTest::NotRun),
        );
        choice.unwrap().suspected
    };
    assert!(!suspected("net_i40e", PortPfc::Honour) && suspected("net_i40e", PortPfc::Send));
    assert!(suspected("mlx5_pci", PortPfc::Honour) && suspected("mlx5_pci", PortPfc::Send));
    assert!(!suspected("net_ixgbe", PortPfc::Send));
    assert!(!suspected("mlx5_pci", PortPfc::Off), "no pause at all");
}

#[test]
fn hardware_on_a_port_that_cannot_is_an_error_with_the_devices_words() {
    let refused = Answer::Refused("Operation not supported (errno 95)".to_owned());
    let request = PfcRequest {
        backend: PfcBackend::Hardware,
        port: PortPfc::Send,
    };
    let ability = ability(("net_af_packet", false), refused, SelfTest::Sent);
    let error = decide(request, &ability).unwrap_err();
    assert!(error.contains("errno 95"), "{error}");
}

#[test]
fn only_a_card_is_requested_unless_it_must() {
    let ask =
        |backend, port, driver| asks(PfcRequest { backend, port }, Card::of_driver(driver, false));
    assert!(ask(PfcBackend::Auto, PortPfc::Auto, "net_ixgbe"));
    assert!(ask(PfcBackend::Auto, PortPfc::Auto, "mlx5_pci"));
    assert!(!ask(PfcBackend::Auto, PortPfc::Auto, "net_af_packet"));
    assert!(ask(PfcBackend::Hardware, PortPfc::Auto, "net_af_packet"));
    assert!(!ask(PfcBackend::Hardware, PortPfc::Off, "net_ixgbe"));
    assert!(!ask(PfcBackend::Software, PortPfc::Auto, "net_ixgbe"));
}
