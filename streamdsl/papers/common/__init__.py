"""What several models of papers share: functions of payloads, and aggregates, as users write them."""
