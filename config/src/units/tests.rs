//! Laws of the quantities: printed values are read back unchanged; refusals name the text.

use proptest::prelude::*;

use super::*;

fn refused<T: std::str::FromStr<Err = UnitError> + std::fmt::Debug>(text: &str) -> UnitError {
    text.parse::<T>().unwrap_err()
}

#[test]
fn sizes() {
    assert_eq!("64MB".parse(), Ok(Bytes(64_000_000)));
    assert_eq!("20KB".parse(), Ok(Bytes(20_000)));
    assert_eq!("1.5MiB".parse(), Ok(Bytes(3 << 19)));
    assert_eq!("9216".parse(), Ok(Bytes(9216)));
    assert_eq!("12 KiB".parse(), Ok(Bytes(12 << 10)));
    for bad in [
        "",
        "MB",
        "-1",
        "1e3",
        "64Mb",
        "1.B",
        ".5KB",
        "1..5KB",
        "0.3B",
        "99999999999GB",
    ] {
        assert!(
            refused::<Bytes>(bad)
                .to_string()
                .contains(&format!("`{bad}`")),
            "{bad}"
        );
    }
}

#[test]
fn rates() {
    assert_eq!("100G".parse(), Ok(BitRate(100_000_000_000)));
    assert_eq!("25Gbps".parse(), Ok(BitRate(25_000_000_000)));
    assert_eq!("10M".parse(), Ok(BitRate(10_000_000)));
    assert_eq!("2.5G".parse(), Ok(BitRate(2_500_000_000)));
    assert_eq!("1000bps".parse(), Ok(BitRate(1_000)));
    // A number alone may have been meant in any unit.
    let why = refused::<BitRate>("100");
    assert_eq!(why.to_string(), "`100` has no unit");
    assert!(format!("{why:#}").contains("write bits per second"));
    refused::<BitRate>("10Gb/s");
    refused::<BitRate>("10MB");
}

#[test]
fn times_and_lengths_need_units() {
    assert_eq!("30us".parse(), Ok(Nanos(30_000)));
    assert_eq!("0.5ms".parse(), Ok(Nanos(500_000)));
    assert_eq!("0".parse(), Ok(Nanos(0)));
    assert_eq!(refused::<Nanos>("30").to_string(), "`30` has no unit");
    assert!(format!("{:#}", refused::<Nanos>("30")).contains("20us"));
    assert_eq!("40m".parse(), Ok(Length(40_000)));
    assert_eq!("100km".parse(), Ok(Length(100_000_000)));
    for text in ["0m", "5mm", "30cm", "40m", "100km"] {
        assert_eq!(text.parse::<Length>().unwrap().to_string(), text);
    }
    assert_eq!(refused::<Length>("40").to_string(), "`40` has no unit");
    refused::<Length>("3 miles");
}

#[test]
fn counts_are_powers_of_two() {
    assert_eq!("16k".parse(), Ok(Count(16_384)));
    assert_eq!("1M".parse(), Ok(Count(1_048_576)));
    refused::<Count>("1.0001k");
}

#[test]
fn percentages() {
    assert_eq!("10%".parse(), Ok(Percent::new(10).unwrap()));
    assert_eq!("0.05%".parse::<Percent>().unwrap().basis_points(), 5);
    assert_eq!("100%".parse(), Ok(Percent::FULL));
    refused::<Percent>("100.01%");
    refused::<Percent>("0.001%");
    assert_eq!(Percent::new(5).unwrap().of(10_000), 500);
    assert!((Percent::new(10).unwrap().fraction() - 0.1).abs() < 1e-12);
}

#[test]
fn thresholds_follow_the_drain_rate() {
    let gig100 = BitRate(100_000_000_000);
    // The published figures for 100G.
    for (us, bytes) in [
        (30, 375_000),
        (120, 1_500_000),
        (60, 750_000),
        (480, 6_000_000),
    ] {
        assert_eq!(Threshold::from_micros(us).bytes(gig100), bytes);
    }
    let slow = BitRate(10_000_000);
    assert_eq!(Threshold::from_micros(30).bytes(slow), 37);
    assert_eq!(Threshold::from_micros(30).bytes_floored(slow, 1500), 6000);
    assert_eq!(
        "20KB"
            .parse::<Threshold>()
            .unwrap()
            .bytes_floored(slow, 9100),
        20_000
    );
    assert_eq!(
        Threshold::from_micros(u64::MAX / 1000).bytes(BitRate(u64::MAX)),
        u64::MAX
    );
}

#[test]
fn ethernet_addresses() {
    let mac: Mac = "02:00:00:00:01:0a".parse().unwrap();
    assert_eq!(mac.0, [2, 0, 0, 0, 1, 10]);
    assert_eq!("02-00-00-00-01-0A".parse(), Ok(mac));
    assert!(!mac.is_group() && "01:00:5e:00:00:01".parse::<Mac>().unwrap().is_group());
    for bad in [
        "",
        "02:00:00:00:01",
        "02:00:00:00:01:02:03",
        "2:0:0:0:1:2",
        "0g:00:00:00:00:00",
    ] {
        refused::<Mac>(bad);
    }
}

#[test]
fn addresses_want_their_length() {
    let error = refused::<Interface>("10.0.1.1");
    assert_eq!(error.to_string(), "`10.0.1.1` has no prefix length");
    assert!(error.accepted().contains("10.0.1.1/32"));
    refused::<Prefix>("10.0.0.0/33");
    refused::<Address>("10.0.0.0/8");
}

/// Prints a value and checks that it parses back to the same value.
fn round_trip<T>(value: T) -> Result<(), TestCaseError>
where
    T: std::fmt::Display + std::str::FromStr + PartialEq + std::fmt::Debug,
    T::Err: std::fmt::Debug,
{
    let text = value.to_string();
    prop_assert_eq!(text.parse::<T>().unwrap(), value, "{}", text);
    Ok(())
}

proptest! {
    #[test]
    fn quantities_round_trip(n in any::<u64>(), shift in 0u32..64) {
        let n = n >> shift;
        round_trip(Bytes(n))?;
        round_trip(BitRate(n))?;
        round_trip(Nanos(n))?;
        round_trip(Length(n))?;
        round_trip(Count(n))?;
        round_trip(Threshold::Bytes(Bytes(n)))?;
        // Zero is written without unit and then is a size.
        round_trip(Threshold::Time(Nanos(n.max(1))))?;
    }

    #[test]
    fn percentages_round_trip(points in 0u16..=10_000) {
        let text = format!("{}.{:02}%", points / 100, points % 100);
        let percent: Percent = text.parse().unwrap();
        prop_assert_eq!(percent.basis_points(), points);
        round_trip(percent)?;
    }

    #[test]
    fn macs_round_trip(octets in any::<[u8; 6]>()) {
        round_trip(Mac(octets))?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,24}") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<BitRate>();
        let _ = text.parse::<Percent>();
        let _ = text.parse::<Threshold>();
        let _ = text.parse::<Mac>();
        let _ = text.parse::<Interface>();
    }

    #[test]
    fn near_quantities_are_exact_or_refused(whole in 0u64..1 << 40, part in 0u64..1000) {
        let time: Nanos = format!("{whole}.{part:03}us").parse().unwrap();
        prop_assert_eq!(time.0, whole * 1000 + part);
        let finer = format!("{whole}.{part:03}5us");
        prop_assert!(finer.parse::<Nanos>().is_err());
    }
}
