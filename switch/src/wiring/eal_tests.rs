use super::*;

fn config(dpdk: &str) -> Config {
    let text = format!(
        "version: 1\n{dpdk}ports:\n  - {{ name: p0, device: net_null0, addresses: [10.0.1.1/24] }}\nbuffer: {{ pool: 16MB }}\n"
    );
    npcc_config::parse("test.yaml", &text).unwrap().config
}

fn planned(dpdk: &str, hugepages: u64) -> Result<EalSetup, EalError> {
    planned_with(&config(dpdk), hugepages, 0)
}

fn planned_with(config: &Config, hugepages: u64, stale: u64) -> Result<EalSetup, EalError> {
    let free = Free {
        hugepages,
        stale,
        mounted: true,
        ordinary: 1 << 30,
    };
    setup(config, &Sizing::of(config), free)
}

fn with_devices(devices: [&str; 2]) -> Config {
    let ports: String = (0..)
        .zip(devices)
        .map(|(at, device)| {
            format!(
                "  - {{ name: p{at}, device: \"{device}\", speed: 10G, addresses: [10.0.{at}.1/24] }}\n"
            )
        })
        .collect();
    let text = format!("version: 1\nports:\n{ports}buffer: {{ pool: 16MB }}\n");
    npcc_config::parse("test.yaml", &text).unwrap().config
}

#[test]
fn each_pci_port_is_allowed_with_its_arguments_and_nothing_else_is_probed() {
    let args = |devices| {
        planned_with(&with_devices(devices), 8 << 30, 0)
            .unwrap()
            .args
            .join(" ")
    };
    let both = args(["0000:3b:00.0,dv_flow_en=2,mprq_en=1", "3b:00.1"]);
    assert!(
        both.contains("-a 0000:3b:00.0,dv_flow_en=2,mprq_en=1 -a 0000:3b:00.1")
            && !both.contains("--no-pci"),
        "{both}"
    );
    let one = args(["0000:3b:00.0", "net_null0"]);
    assert!(
        one.matches("-a ").count() == 1 && !one.contains("net_null"),
        "{one}"
    );
    let none = args(["net_null0", "net_null1"]);
    assert!(none.contains("--no-pci") && !none.contains("-a "), "{none}");
    let twice = planned("dpdk: { eal_args: [\"--no-pci\"] }\n", 0).unwrap();
    assert_eq!(
        twice.args.iter().filter(|arg| *arg == "--no-pci").count(),
        1
    );
}

#[test]
fn the_program_name_is_no_argument() {
    let args = planned("", 0).unwrap().args;
    assert!(args[0].starts_with('-'), "options would end here: {args:?}");
}

#[test]
fn hugepages_of_a_dead_process_count_where_eal_frees_them() {
    let config = config("dpdk: { hugepages: on }\n");
    assert!(planned_with(&config, 1 << 20, 0).is_err());
    assert!(!planned_with(&config, 1 << 20, 8 << 30).unwrap().no_huge);
    let in_memory = self::config("dpdk: { eal_args: [--in-memory] }\n");
    assert!(planned_with(&in_memory, 1 << 20, 8 << 30).unwrap().no_huge);
}

#[test]
fn files_are_named_by_the_socket() {
    let one = file_prefix("/run/npcc-switch.sock");
    assert_eq!(one, file_prefix("/run/npcc-switch.sock"));
    assert_ne!(one, file_prefix("/run/npcc-switcn.sock"));
    let long = file_prefix(&format!("/run/{}", "x".repeat(90)));
    assert!("/var/run/dpdk//mp_socket".len() + long.len() < 107);
    let said = planned("telemetry: { socket: /run/other.sock }\n", 0).unwrap();
    let wanted = format!("--file-prefix={}", file_prefix("/run/other.sock"));
    assert!(said.args.contains(&wanted), "{:?}", said.args);
}

#[test]
fn without_hugepages_ordinary_memory_is_used_and_in_memory_dropped() {
    let plan = planned("dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }\n", 0).unwrap();
    assert!(plan.no_huge);
    let args = plan.args.join(" ");
    assert!(
        !args.contains("--in-memory") && !args.contains("--huge-unlink"),
        "{args}"
    );
    for flag in [
        "-l 0,1",
        "--no-pci",
        "--no-huge",
        "--no-shconf",
        "-m ",
        "--file-prefix=npcc-",
    ] {
        assert!(args.contains(flag), "{flag} in {args}");
    }
}

#[test]
fn a_shared_core_has_two_threads() {
    let shared =
        config("cores: { control: 0, workers: [1, 0] }\nnpcc: { tick: 2ms, recovery: 4ms }\n");
    let free = Free {
        hugepages: 0,
        stale: 0,
        mounted: true,
        ordinary: 1 << 30,
    };
    let args = setup(&shared, &Sizing::of(&shared), free)
        .unwrap()
        .args
        .join(" ");
    assert!(
        args.contains("--lcores 0@1,1@0,2@0 --main-lcore=2"),
        "{args}"
    );
    assert_eq!(worker_lcore(&shared, 1), Some(1));
    assert_eq!(worker_lcore(&config(""), 0), Some(1));
}

#[test]
fn with_hugepages_the_operators_arguments_stand() {
    let plan = planned(
        "dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }\n",
        8 << 30,
    )
    .unwrap();
    assert!(!plan.no_huge);
    let args = plan.args.join(" ");
    assert!(
        args.contains("--in-memory") && !args.contains("--file-prefix"),
        "{args}"
    );
}

/// DPDK refuses the option beside `--single-file-segments`.
#[test]
fn files_in_hugepages_are_unlinked_at_once_unless_the_operator_wants_otherwise() {
    let unlinked = |text: &str| {
        let plan = planned(text, 8 << 30).unwrap();
        assert!(!plan.no_huge);
        plan.args.contains(&"--huge-unlink=always".to_owned())
    };
    assert!(unlinked(""));
    for own in [
        "--in-memory",
        "--huge-unlink=existing",
        "--single-file-segments",
    ] {
        assert!(
            !unlinked(&format!("dpdk: {{ eal_args: [{own}] }}\n")),
            "{own}"
        );
    }
}

#[test]
fn a_pool_larger_than_the_machine_is_refused_before_eal_tries() {
    let config = config("");
    let free = Free {
        hugepages: 0,
        stale: 0,
        mounted: true,
        ordinary: 1 << 20,
    };
    let error = setup(&config, &Sizing::of(&config), free)
        .unwrap_err()
        .to_string();
    assert!(error.contains("buffer.pool"), "{error}");
}

#[test]
fn hugepages_that_eal_cannot_reach_are_not_counted_on() {
    let of = |dpdk: &str| {
        let config = config(dpdk);
        let free = Free {
            hugepages: 1 << 30,
            stale: 0,
            mounted: false,
            ordinary: 1 << 30,
        };
        setup(&config, &Sizing::of(&config), free)
    };
    assert_eq!(of("").map(|plan| plan.no_huge), Ok(true));
    let in_memory = "dpdk: { eal_args: [--in-memory] }\n";
    assert_eq!(of(in_memory).map(|plan| plan.no_huge), Ok(false));
    let required = of("dpdk: { hugepages: on }\n").unwrap_err();
    assert!(
        required.to_string().contains("mount -t hugetlbfs"),
        "{required}"
    );
}

#[test]
fn required_hugepages_that_are_missing_are_an_error_with_the_command() {
    let error = planned("dpdk: { hugepages: on }\n", 0)
        .unwrap_err()
        .to_string();
    assert!(error.contains("/proc/sys/vm/nr_hugepages"), "{error}");
}
