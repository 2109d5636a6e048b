"""A cron expression or an interval in plain words. Pure, and for readers only: what is due is computed elsewhere."""

import re

MINUTE_MS = 60_000
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_SHORT_DAYS = {name[:3].upper(): place for place, name in enumerate(DAYS[:7])}
_SHORT_MONTHS = {name[:3].upper(): place for place, name in enumerate(MONTHS) if name}
_UNITS = ((24 * 60, "day"), (60, "hour"), (1, "minute"))
_MOST_TIMES = 6
EVERY_DAY = "every day"
_ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}


def in_words(cron: str | None, interval_ms: int | None) -> str:
    """When it is due, such as `at 09:00, Monday to Friday`. What has no short name is told field by field."""
    if cron is None:
        return _interval((interval_ms or 0) // MINUTE_MS)
    minute, hour, day, month, weekday = cron.split()
    time, days = _time(minute, hour), _days(day, weekday)
    parts = [time, "" if time.startswith("every") and days == EVERY_DAY else days, _months(month)]
    told = ", ".join(part for part in parts if part)
    return told[0].upper() + told[1:]


def _interval(minutes: int) -> str:
    for size, name in _UNITS:
        if minutes % size == 0:
            count = minutes // size
            return f"Every {name}" if count == 1 else f"Every {count} {name}s"
    return f"Every {minutes} minutes"


def _time(minute: str, hour: str) -> str:
    minutes, hours = _numbers(minute), _numbers(hour)
    if minutes and hours and len(minutes) * len(hours) <= _MOST_TIMES:
        return f"at {_listed([f'{each:02}:{at:02}' for each in hours for at in minutes])}"
    if minutes and len(minutes) == 1 and hour == "*":
        return "every hour, on the hour" if minutes == [0] else f"every hour at {minutes[0]} minutes past"
    hours_told = "" if hour == "*" else f" of {_steps(hour, 'hour')}"
    return f"{_steps(minute, 'minute')}{hours_told}"


def _steps(word: str, unit: str) -> str:
    if word == "*":
        return f"every {unit}"
    if found := re.fullmatch(r"(?:\*|0)/(\d+)", word):
        return f"every {found[1]} {unit}s"
    if found := re.fullmatch(r"(\d+)-(\d+)", word):
        return f"every {unit} from {found[1]} to {found[2]}"
    if found := re.fullmatch(r"(\d+)-(\d+)/(\d+)", word):
        return f"every {found[3]} {unit}s from {found[1]} to {found[2]}"
    return f"{unit} {word}"


def _days(day: str, weekday: str) -> str:
    by_date = "" if day == "*" else "on the last day of the month" if day == "L" else f"on day {_counted(day)}"
    by_name = "" if weekday == "*" else _weekdays(weekday)
    if not by_date and not by_name:
        return EVERY_DAY
    either = day[0] not in "*" and weekday[0] not in "*"
    return f" {'or' if either else 'and'} ".join(part for part in (by_date, by_name) if part)


def _counted(word: str) -> str:
    numbers = _numbers(word)
    return f"{_listed([str(each) for each in numbers])} of the month" if numbers else f"{word} of the month"


def _weekdays(word: str) -> str:
    named = [_weekday(part) for part in word.upper().split(",")]
    return f"on {_listed(named)}" if len(named) > 1 or "to" not in named[0] else named[0]


def _weekday(word: str) -> str:
    if found := re.fullmatch(r"(\w+)-(\w+)", word):
        return f"{_day(found[1])} to {_day(found[2])}"
    if found := re.fullmatch(r"(\w+)#([1-5])", word):
        return f"the {_ORDINALS[found[2]]} {_day(found[1])} of the month"
    if found := re.fullmatch(r"(\w+)L", word):
        return f"the last {_day(found[1])} of the month"
    return _day(word)


def _day(word: str) -> str:
    place = _SHORT_DAYS.get(word, int(word) if word.isdecimal() and int(word) <= 7 else None)
    return word if place is None else DAYS[place]


def _months(word: str) -> str:
    if word == "*":
        return ""
    return f"in {_listed([_month_range(part) for part in word.upper().split(',')])}"


def _month_range(word: str) -> str:
    return " to ".join(_month(part) for part in word.split("-"))


def _month(word: str) -> str:
    place = _SHORT_MONTHS.get(word, int(word) if word.isdecimal() and 1 <= int(word) <= 12 else None)
    return word if place is None else MONTHS[place]


def _numbers(word: str) -> list[int]:
    """The numbers of a plain list; none for anything else."""
    parts = word.split(",")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
