//! Configurations of worlds: a switch with hosts at two near ports, 0 and 1, and at two far ports, 2 and 3, whose queue 3 NPCC watches.

/// Description of a switch.
#[derive(Debug, Clone)]
pub struct Switch {
    /// Number of workers.
    pub workers: u8,
    /// Speed of all links, and bytes of the pool.
    pub link: &'static str,
    pub pool: &'static str,
    /// Entries of the flow table: a small one is made sooner.
    pub flows: u32,
    /// Further keys of port 2, each as `, key: value`.
    pub far: &'static str,
    /// Further keys of `npcc`, each as `key: value, `.
    pub npcc: &'static str,
}

impl Default for Switch {
    /// Two workers, 10G.
    fn default() -> Switch {
        Switch {
            workers: 2,
            link: "10G",
            pool: "6MB",
            flows: 4_096,
            far: "",
            npcc: "",
        }
    }
}

impl Switch {
    /// The configuration file.
    pub fn text(&self) -> String {
        let Switch {
            workers,
            link,
            pool,
            flows,
            far,
            npcc,
        } = self;
        let port = |n: u8, more: &str| {
            format!(
                "  - {{ name: p{n}, device: '0000:3b:00.{n}', link_speed: {link}, mac: '02:00:00:00:0{m}:01', mtu: 1500, \
                 addresses: [10.0.{m}.1/24]{more} }}\n",
                m = n + 1
            )
        };
        let neighbor = |n: u8| {
            format!(
                "  - {{ address: 10.0.{m}.3, port: p{n}, mac: '02:00:00:00:0{m}:03' }}\n",
                m = n + 1
            )
        };
        let watched = ", npcc: { queues: [3] }";
        let ports = [
            port(0, ""),
            port(1, ""),
            port(2, &format!("{watched}{far}")),
            port(3, watched),
        ];
        let ports = ports.concat();
        let neighbors: String = (0..4).map(neighbor).collect();
        let cores: Vec<String> = (1..=*workers).map(|core| core.to_string()).collect();
        format!(
            "version: 1
cores: {{ control: 0, workers: [{}] }}
ports:
{ports}neighbors:
{neighbors}qos: {{ profile: roce-lossless }}
buffer: {{ pool: {pool} }}
npcc: {{ flows: {flows}, {npcc}gate: off }}
",
            cores.join(", ")
        )
    }
}

/// Returns the default switch, with further keys of `npcc`.
pub fn usual(npcc: &'static str) -> String {
    let switch = Switch {
        npcc,
        ..Switch::default()
    };
    switch.text()
}
