"""Figures that mean nothing, the same every time."""

import random

from pydantic import BaseModel

REGIONS = ("North", "East", "South", "West")
PRODUCTS = {"Nest": 12.5, "Twig": 0.8, "Pebble": 3.2}


class Sale(BaseModel):
    region: str
    product: str
    units: int
    revenue: float


def make_sales(count: int) -> list[Sale]:
    """`count` sales."""
    luck = random.Random(count)
    sales: list[Sale] = []
    for _ in range(count):
        product, price = luck.choice(list(PRODUCTS.items()))
        units = luck.randint(1, 40)
        revenue = round(units * price, 2)
        sales.append(Sale(region=luck.choice(REGIONS), product=product, units=units, revenue=revenue))
    return sales


def to_markdown(sales: list[Sale]) -> str:
    """A table with one line a sale."""
    lines = [f"| {sale.region} | {sale.product} | {sale.units} | {sale.revenue:.2f} |" for sale in sales]
    return "\n".join(["| Region | Product | Units | Revenue |", "|---|---|--:|--:|", *lines])
