# Names in the dump of a database that was made before 0.1.0, as they are now: `chandler migrate` names the command that uses this file.
s/^COPY market\.pending (.*)/COPY ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at)/
# Candles that were made ahead are made again.
/^COPY market\.rolled /,/^\\\.$/d
/^COPY market\.rollup /,/^\\\.$/d
s/^COPY ops\.backfill_past /COPY ops.fetch_totals /
s/^COPY ops\.open_wall /COPY ops.lifted_history_limit /
/^COPY /{
s/proven_at/lifted_at/
s/is_cut/is_truncated/
s/essence/fingerprint/
s/set_aside/quarantined/
s/ told,/ answered_slots,/
s/ doubted,/ unconfirmed_slots,/
s/ turn_at,/ refresh_at,/
s/refused_as/refused_scheme/
s/spent_until/exhausted_until/
s/spent_message/exhausted_message/
s/month_held/month_leased/
}
/^COPY market\.refusal /,/^\\\.$/s/	plan wall	/	history limit	/
/^COPY ops\.schedule_run /,/^\\\.$/s/	overtaken	/	superseded	/
/^COPY ops\.catalogue_item /,/^\\\.$/s/	doubted	/	unconfirmed	/
/^COPY ops\."*fetch"* /,/^\\\.$/s/	doubted	/	unconfirmed	/
/^COPY ops\."*fetch"* /,/^\\\.$/s/	wall	/	history limit	/
/^COPY ops\.notice /,/^\\\.$/s/	wall	/	history-limit	/
/^COPY ops\.quota /,/^\\\.$/s/	spent	/	exhausted	/
/^COPY ops\.fetch_totals /,/^\\\.$/s/	wall	/	history limit	/
/^COPY ops\.notice /,/^\\\.$/s/	wall \([a-z]*\) /	history limit \1 /
/^COPY ops\.backfill /,/^\\\.$/s/	set aside	/	reserved	/
/^COPY ops\.backfill /,/^\\\.$/s/	spent	/	quota exhausted	/
