"""A structured result of about 10 KB, the same for each server."""

from pydantic import BaseModel


class Product(BaseModel):
    id: int
    name: str
    price: float
    in_stock: bool
    tags: list[str]


class Catalogue(BaseModel):
    products: list[Product]


PRODUCTS = Catalogue(
    products=[
        Product(id=number, name=f"Product number {number}", price=number * 1.25, in_stock=True, tags=["new", "sale"])
        for number in range(100)
    ]
)


def catalogue() -> Catalogue:
    return PRODUCTS
